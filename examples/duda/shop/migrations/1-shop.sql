-- SQL that SQLite and PostgreSQL both know: keys are made by the service, money is counted in cents, times in seconds.
CREATE TABLE customers (
    name TEXT NOT NULL PRIMARY KEY,
    password TEXT NOT NULL,
    joined BIGINT NOT NULL
);
CREATE TABLE goods (
    id INTEGER NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    price INTEGER NOT NULL CHECK (price > 0),
    stock INTEGER NOT NULL CHECK (stock >= 0)
);
CREATE TABLE orders (
    id TEXT NOT NULL PRIMARY KEY,
    customer TEXT NOT NULL REFERENCES customers (name),
    made BIGINT NOT NULL
);
CREATE TABLE order_lines (
    order_id TEXT NOT NULL REFERENCES orders (id),
    good INTEGER NOT NULL REFERENCES goods (id),
    n INTEGER NOT NULL CHECK (n > 0),
    price INTEGER NOT NULL,
    PRIMARY KEY (order_id, good)
);
CREATE INDEX orders_of_a_customer ON orders (customer, made);
