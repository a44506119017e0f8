CREATE TABLE issues (
    id INTEGER PRIMARY KEY,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'open',
    author TEXT NOT NULL,
    created BIGINT NOT NULL
);
CREATE TABLE comments (
    issue INTEGER NOT NULL REFERENCES issues (id),
    author TEXT NOT NULL,
    text TEXT NOT NULL,
    created BIGINT NOT NULL
);
CREATE INDEX comments_of_issue ON comments (issue, created);
INSERT INTO issues (title, text, author, created) VALUES
    ('The coffee machine drips', 'Since Monday.', 'ana', 1767600000),
    ('Buy tea', 'Earl Grey, please.', 'bo', 1767610000);
INSERT INTO comments (issue, author, text, created) VALUES (1, 'bo', 'The seal is worn.', 1767620000);
