/* SPDX-License-Identifier: Apache-2.0 */
#include "tracker.h"

static const char *const states[] = {"open", "closed", NULL};
static const struct duda_schema_field form_fields[] = {
    DUDA_STRING(struct issue, title, .min_length = 1, .max_length = 100),
    DUDA_STRING(struct issue, text, .max_length = 10000),
    DUDA_ENUM(struct issue, state, states, .optional = true),
};
typedef struct issue new_issue; /* the name of the type in the API */
const struct duda_schema issue_form = DUDA_SCHEMA(new_issue, form_fields);

/* Stores a new issue of this user, and sets its ID. */
int insert_issue(struct duda_ctx *d, struct issue *issue)
{
    struct duda_sql_result result;
    issue->author = duda_identity(d)->user;
    issue->created = mk_worker_now(duda_worker(d));
    int e = duda_sql_query_struct(d, db(d), &result,
                                  "INSERT INTO issues (title, text, state, author, created) "
                                  "VALUES (:title, :text, :state, :author, :created) RETURNING id",
                                  &issue_schema, issue);
    issue->id = e ? 0 : duda_sql_cell(&result, 0, 0)->number;
    return e;
}

/* Redirects to an issue, whose page shows the message. */
int go_to_issue(struct duda_ctx *d, int64_t id, mk_str message)
{
    mk_str url = duda_url_for(d, "issue", duda_value_members({"id", duda_value_integer(id)}));
    return duda_flash_redirect(d, "success", message, url);
}

static int show_new(struct duda_ctx *d)
{
    return duda_render_form(d, "edit.html", &issue_form, &(struct issue){});
}

static int create(struct duda_ctx *d)
{
    struct issue issue = {};
    int e = duda_bind_form_or_render(d, &issue_form, &issue, "edit.html");
    e = e ? e : insert_issue(d, &issue);
    return e ? e : go_to_issue(d, issue.id, MK_STR("The issue is saved."));
}

static int show_edit(struct duda_ctx *d)
{
    struct issue issue;
    int e = find_issue(d, &issue);
    return e ? e : duda_render_form(d, "edit.html", &issue_form, &issue);
}

static int edit(struct duda_ctx *d)
{
    struct issue issue;
    int e = find_issue(d, &issue);
    if (!e && !mk_str_eq(issue.author, duda_identity(d)->user))
        return 403;
    e = e ? e : duda_bind_form_or_render(d, &issue_form, &issue, "edit.html");
    e = e ? e
          : duda_sql_query_struct(
                d, db(d), NULL,
                "UPDATE issues SET title = :title, text = :text, state = :state WHERE id = :id",
                &issue_schema, &issue);
    return e ? e : go_to_issue(d, issue.id, MK_STR("The issue is saved."));
}

static int comment(struct duda_ctx *d)
{
    struct issue issue;
    mk_str text = duda_form(d, "text");
    int e = find_issue(d, &issue);
    if (e || !text.len)
        return e ? e : 422;
    e = duda_sql_query(d, db(d), NULL,
                       "INSERT INTO comments (issue, author, text, created) VALUES ($1, $2, $3, $4)",
                       duda_sql_integer(issue.id), duda_sql_text(duda_identity(d)->user), duda_sql_text(text),
                       duda_sql_integer(mk_worker_now(duda_worker(d))));
    return e ? e : go_to_issue(d, issue.id, MK_STR("The comment is saved."));
}

DUDA_ROUTES(changes, DUDA_GET("/new", show_new, "Shows the form of a new issue."),
            DUDA_POST("/new", create, "Creates an issue.", .form = &issue_form),
            DUDA_GET("/issues/:id<int>/edit", show_edit, "Shows the form of an issue."),
            DUDA_POST("/issues/:id<int>/edit", edit, "Changes an issue.", .form = &issue_form),
            DUDA_POST("/issues/:id<int>/comments", comment, "Adds a comment."));
