/* SPDX-License-Identifier: Apache-2.0 */
#include "tracker.h"

static int find_token(struct duda_ctx *d, mk_str token_hash, struct duda_identity *identity)
{
    struct duda_sql_value owner;
    int e = duda_sql_query_cell(d, db(d), &owner, "SELECT owner FROM tokens WHERE hash = $1",
                                duda_sql_text(token_hash));
    identity->user = owner.text;
    return e;
}

static const struct duda_token_auth token_auth = DUDA_TOKEN_AUTH(.realm = "tracker", .find = find_token);

static int create_token(struct duda_ctx *d)
{
    mk_str token, hash;
    int e = duda_token_new(d, "tracker_", &token, &hash);
    e = e ? e
          : duda_sql_query(d, db(d), NULL, "INSERT INTO tokens (hash, owner) VALUES ($1, $2)",
                           duda_sql_text(hash), duda_sql_text(duda_identity(d)->user));
    return e ? e
             : duda_flash_redirect(d, "success", duda_sprintf(d, "Your token: %s", token.p),
                                   duda_url_for(d, "issues", duda_value_null()));
}

static int list(struct duda_ctx *d)
{
    struct search search;
    struct issue *issues;
    size_t n;
    int e = find_issues(d, &search, &issues, &n);
    return e ? e
             : duda_send_json(d, duda_value_structs(&issue_schema, issues, n > PAGE_SIZE ? PAGE_SIZE : n));
}

static int show(struct duda_ctx *d)
{
    struct issue issue;
    int e = find_issue(d, &issue);
    return e ? e : duda_send_json_struct(d, &issue_schema, &issue);
}

static int create(struct duda_ctx *d)
{
    struct issue issue = {};
    int e = duda_bind_json(d, &issue_form, &issue, NULL);
    e = e ? e : insert_issue(d, &issue);
    e = e ? e : duda_send_json_struct(d, &issue_schema, &issue);
    return e ? e : 201;
}

DUDA_ROUTES(tokens, DUDA_POST("/tokens", create_token, "Creates a token for the API."));
DUDA_ROUTES(api, DUDA_ERROR(duda_error_problem),
            DUDA_GET("/issues", list, "Lists the issues.", .query = &search_schema,
                     .response_body = &issue_schema, .response_is_list = true),
            DUDA_GET("/issues/:id<int>", show, "Shows an issue.", .response_body = &issue_schema,
                     .responses = "200 404"),
            DUDA_BEFORE(duda_auth_bearer, .data = &token_auth, .security = "bearer"),
            DUDA_POST("/issues", create, "Creates an issue.", .request_body = &issue_form,
                      .response_body = &issue_schema, .responses = "201"));
