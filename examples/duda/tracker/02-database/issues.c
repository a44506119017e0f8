/* SPDX-License-Identifier: Apache-2.0 */
#include "tracker.h"

static const char *const states[] = {"open", "closed", NULL};
static const struct duda_schema_field issue_fields[] = {
    DUDA_INTEGER(struct issue, id),         DUDA_STRING(struct issue, title),
    DUDA_STRING(struct issue, text),        DUDA_STRING(struct issue, author),
    DUDA_ENUM(struct issue, state, states), DUDA_INTEGER(struct issue, created),
};
const struct duda_schema issue_schema = DUDA_SCHEMA(struct issue, issue_fields);

static int list(struct duda_ctx *d)
{
    struct issue *issues;
    size_t n;
    int e = duda_sql_query_rows(d, db(d), &issue_schema, &issues, &n,
                                "SELECT * FROM issues ORDER BY id DESC LIMIT 20");
    if (e)
        return e;
    return duda_render(d, "list.html",
                       duda_value_members({"issues", duda_value_structs(&issue_schema, issues, n)}));
}

/* Reads the issue whose ID is in the path. */
int find_issue(struct duda_ctx *d, struct issue *issue)
{
    int64_t id;
    if (!duda_param_int(d, "id", &id))
        return 404;
    return duda_sql_query_row(d, db(d), &issue_schema, issue, "SELECT * FROM issues WHERE id = $1",
                              duda_sql_integer(id));
}

static int show(struct duda_ctx *d)
{
    struct duda_sql_result comments;
    struct issue issue;
    int e = find_issue(d, &issue);
    e = e ? e
          : duda_sql_query(d, db(d), &comments,
                           "SELECT author, text, created FROM comments WHERE issue = $1 ORDER BY created",
                           duda_sql_integer(issue.id));
    if (e)
        return e;
    return duda_render(d, "issue.html",
                       duda_value_members({"issue", duda_value_struct(&issue_schema, &issue)},
                                          {"comments", duda_sql_rows_value(d, &comments)}));
}

DUDA_ROUTES(issues, DUDA_GET("/", list, "Lists the issues.", .url_name = "issues"),
            DUDA_GET("/issues/:id<int>", show, "Shows an issue.", .url_name = "issue"));
