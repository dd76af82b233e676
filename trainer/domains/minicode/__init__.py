"""minicode: short Python functions over lists of digits, judged on 8 to 16 tests, one reward component per test."""
