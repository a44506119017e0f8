/* SPDX-License-Identifier: Apache-2.0 */
#include "tracker.h"

static const char *const states[] = {"open", "closed", NULL};
static const struct duda_schema_field issue_fields[] = {
    DUDA_INTEGER(struct issue, id),         DUDA_STRING(struct issue, title),
    DUDA_STRING(struct issue, text),        DUDA_STRING(struct issue, author),
    DUDA_ENUM(struct issue, state, states), DUDA_INTEGER(struct issue, created),
};
const struct duda_schema issue_schema = DUDA_SCHEMA(struct issue, issue_fields);

static const struct duda_schema_field search_fields[] = {
    DUDA_STRING(struct search, q, .optional = true, .max_length = 100),
    DUDA_INTEGER(struct search, page, .optional = true, DUDA_MINIMUM(1), DUDA_MAXIMUM(1000)),
};
const struct duda_schema search_schema = DUDA_SCHEMA(struct search, search_fields);

/* Reads the search from the query string, and finds one more issue than a page shows. */
int find_issues(struct duda_ctx *d, struct search *search, struct issue **issues, size_t *n)
{
    struct duda_sql_result result;
    *search = (struct search){.q = MK_STR(""), .page = 1};
    int e = duda_bind_query(d, &search_schema, search);
    struct search escaped = {.q = duda_sql_like_escape(d, search->q), .page = search->page};
    e = e ? e
          : duda_sql_query_struct(d, db(d), &result,
                                  "SELECT * FROM issues "
                                  "WHERE lower(title || ' ' || text) LIKE '%' || lower(:q) || '%' ESCAPE '!' "
                                  "ORDER BY id DESC LIMIT 21 OFFSET (:page - 1) * 20",
                                  &search_schema, &escaped);
    e = e ? e : duda_sql_bind_rows(d, &result, &issue_schema, issues);
    *n = e ? 0 : result.n_rows;
    return e;
}

static int list(struct duda_ctx *d)
{
    struct search search;
    struct issue *issues;
    size_t n;
    int e = find_issues(d, &search, &issues, &n);
    if (e)
        return e;
    bool has_next = n > PAGE_SIZE;
    return duda_render(
        d, "list.html",
        duda_value_members({"issues", duda_value_structs(&issue_schema, issues, has_next ? PAGE_SIZE : n)},
                           {"q", duda_value_text(search.q)},
                           {"next", has_next ? duda_value_integer(search.page + 1) : duda_value_null()}));
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
    struct duda_sql_result comments, files;
    struct issue issue;
    int e = find_issue(d, &issue);
    e = e ? e
          : duda_sql_query(d, db(d), &comments,
                           "SELECT author, text, created FROM comments WHERE issue = $1 ORDER BY created",
                           duda_sql_integer(issue.id));
    e = e ? e
          : duda_sql_query(d, db(d), &files, "SELECT id, name FROM attachments WHERE issue = $1",
                           duda_sql_integer(issue.id));
    if (e)
        return e;
    return duda_render(d, "issue.html",
                       duda_value_members({"issue", duda_value_struct(&issue_schema, &issue)},
                                          {"comments", duda_sql_rows_value(d, &comments)},
                                          {"files", duda_sql_rows_value(d, &files)}));
}

DUDA_ROUTES(issues, DUDA_GET("/", list, "Lists the issues.", .url_name = "issues"),
            DUDA_GET("/issues/:id<int>", show, "Shows an issue.", .url_name = "issue"));
