CREATE TABLE tokens (
    hash TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL REFERENCES users (name)
);
