CREATE TABLE attachments (
    id TEXT NOT NULL PRIMARY KEY,
    issue INTEGER NOT NULL REFERENCES issues (id),
    name TEXT NOT NULL,
    content BYTEA NOT NULL
);
CREATE INDEX attachments_of_issue ON attachments (issue);
