/* SPDX-License-Identifier: Apache-2.0 */
#include "tracker.h"

enum { FILE_MAX = 4 << 20 };

static const struct duda_schema_field attachment_fields[] = {
    DUDA_STRING(struct attachment, id),
    DUDA_STRING(struct attachment, name),
    DUDA_BYTES(struct attachment, content, .optional = true),
};
const struct duda_schema attachment_schema = DUDA_SCHEMA(struct attachment, attachment_fields);

static int upload(struct duda_ctx *d)
{
    struct issue issue;
    struct duda_sql_result result;
    char id[DUDA_UUID_LEN];
    const struct mk_upload *file = duda_upload(d, "file");
    int e = find_issue(d, &issue);
    if (e || !file)
        return e ? e : 422;
    char *content = duda_alloc(d, file->size);
    ssize_t n = content ? duda_upload_read(d, file, content, file->size, 0) : -ENOMEM;
    if (n < 0)
        return (int)n;
    duda_uuid4(id);
    e = duda_sql_query(d, db(d), &result,
                       "INSERT INTO attachments (id, issue, name, content) VALUES ($1, $2, $3, $4)",
                       duda_sql_text(mk_str_of(id, sizeof id)), duda_sql_integer(issue.id),
                       duda_sql_text(file->file_name), duda_sql_blob(mk_str_of(content, (size_t)n)));
    return e ? e : go_to_issue(d, issue.id, "The file is attached.");
}

static int download(struct duda_ctx *d)
{
    struct duda_sql_result result;
    struct attachment file;
    int e = duda_sql_query(d, db(d), &result, "SELECT * FROM attachments WHERE id = $1",
                           duda_sql_text(duda_param(d, "id")));
    e = e ? e : duda_sql_bind_row(d, &result, 0, &attachment_schema, &file);
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
