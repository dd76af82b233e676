def attack(context):
    return [float("nan"), float("inf"), -float("inf"), 1e308 * 10, -0.0, 10**400]
