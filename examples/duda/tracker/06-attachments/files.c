/* SPDX-License-Identifier: Apache-2.0 */
#include "tracker.h"

enum { FILE_MAX = 4 << 20 };

struct attachment {
    mk_str name, content;
};
static const struct duda_schema_field attachment_fields[] = {
    DUDA_STRING(struct attachment, name),
    DUDA_BYTES(struct attachment, content),
};
static const struct duda_schema attachment_schema = DUDA_SCHEMA(struct attachment, attachment_fields);

static int upload(struct duda_ctx *d)
{
    struct issue issue;
    mk_str content;
    char id[DUDA_UUID_LEN];
    const struct mk_upload *file = duda_upload(d, "file");
    int e = find_issue(d, &issue);
    e = e ? e : file ? duda_upload_content(d, file, &content) : 422;
    if (e)
        return e;
    duda_uuid4(id);
    e = duda_sql_query(d, db(d), NULL,
                       "INSERT INTO attachments (id, issue, name, content) VALUES ($1, $2, $3, $4)",
                       duda_sql_text(mk_str_of(id, sizeof id)), duda_sql_integer(issue.id),
                       duda_sql_text(file->file_name), duda_sql_blob(content));
    return e ? e : go_to_issue(d, issue.id, MK_STR("The file is attached."));
}

static int download(struct duda_ctx *d)
{
    struct attachment file;
    int e = duda_sql_query_row(d, db(d), &attachment_schema, &file,
                               "SELECT name, content FROM attachments WHERE id = $1",
                               duda_sql_text(duda_param(d, "id")));
    e = e ? e : duda_attachment(d, file.name);
    e = e ? e : duda_content_type(d, MK_STR("application/octet-stream"));
    e = e ? e : duda_make_conditional(d, MK_CONDITIONAL_ETAG | MK_CONDITIONAL_RANGES);
    return e ? e : duda_write(d, file.content);
}

DUDA_ROUTES(files,
            DUDA_POST("/issues/:id<int>/files", upload, "Attaches a file.", .files = "file",
                      .body_max = FILE_MAX),
            DUDA_GET("/files/:id<uuid>", download, "Downloads a file.",
                     .response_types = "application/octet-stream"));
