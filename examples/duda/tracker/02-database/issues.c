/* SPDX-License-Identifier: Apache-2.0 */
#include "tracker.h"

static const char *const states[] = {"open", "closed", NULL};
static const struct duda_schema_field issue_fields[] = {
    DUDA_INTEGER(struct issue, id),         DUDA_STRING(struct issue, title),
    DUDA_STRING(struct issue, text),        DUDA_STRING(struct issue, author),
    DUDA_ENUM(struct issue, state, states), DUDA_INTEGER(struct issue, created),
};
const struct duda_schema issue_schema = DUDA_SCHEMA(struct issue, issue_fields);

struct comment {
    mk_str author, text;
    int64_t created;
};
static const struct duda_schema_field comment_fields[] = {
    DUDA_STRING(struct comment, author),
    DUDA_STRING(struct comment, text),
    DUDA_INTEGER(struct comment, created),
};
static const struct duda_schema comment_schema = DUDA_SCHEMA(struct comment, comment_fields);

static int list(struct duda_ctx *d)
{
    struct duda_sql_result result;
    struct issue *issues;
    int e = duda_sql_query(d, db(d), &result, "SELECT * FROM issues ORDER BY id DESC LIMIT 20");
    e = e ? e : duda_sql_bind_rows(d, &result, &issue_schema, &issues);
    if (e)
        return e;
    return show_page(
        d, "list.html",
        duda_value_members({"issues", duda_value_structs(&issue_schema, issues, result.n_rows)}));
}

/* Reads the issue whose ID is in the path. */
int find_issue(struct duda_ctx *d, struct issue *issue)
{
    struct duda_sql_result result;
    int64_t id;
    if (!duda_param_int(d, "id", &id))
        return 404;
    int e = duda_sql_query(d, db(d), &result, "SELECT * FROM issues WHERE id = $1", duda_sql_integer(id));
    return e ? e : duda_sql_bind_row(d, &result, 0, &issue_schema, issue);
}

static int show(struct duda_ctx *d)
{
    struct duda_sql_result result;
    struct issue issue;
    struct comment *comments;
    int e = find_issue(d, &issue);
    e = e ? e
          : duda_sql_query(d, db(d), &result, "SELECT * FROM comments WHERE issue = $1 ORDER BY created",
                           duda_sql_integer(issue.id));
    e = e ? e : duda_sql_bind_rows(d, &result, &comment_schema, &comments);
    if (e)
        return e;
    return show_page(
        d, "issue.html",
        duda_value_members({"issue", duda_value_struct(&issue_schema, &issue)},
                           {"comments", duda_value_structs(&comment_schema, comments, result.n_rows)}));
}

DUDA_ROUTES(issues, DUDA_GET("/", list, "Lists the issues."),
            DUDA_GET("/issues/:id<int>", show, "Shows an issue.", .url_name = "issue"));
