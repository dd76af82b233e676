"""Storage in Postgres: tables, the engine, and one module of queries per purpose."""
