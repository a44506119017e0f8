CREATE TABLE books (
    id INTEGER PRIMARY KEY,
    title TEXT NOT NULL,
    author TEXT NOT NULL,
    year INTEGER NOT NULL
);
CREATE TABLE keys (
    hash TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL
);
INSERT INTO books (title, author, year) VALUES
    ('The Time Machine', 'H. G. Wells', 1895),
    ('From the Earth to the Moon', 'Jules Verne', 1865),
    ('Around the Moon', 'Jules Verne', 1869);
