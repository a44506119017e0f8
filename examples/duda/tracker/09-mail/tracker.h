/* SPDX-License-Identifier: Apache-2.0 */
#define DUDA_USE "duda-auth", "duda-jobs", "duda-kv", "duda-smtp", "duda-sql"
#include <duda.h>
#include <duda/auth.h>
#include <duda/crypto.h>
#include <duda/sql.h>
#include <errno.h>

struct issue {
    int64_t id;
    mk_str title, text, author;
    unsigned state; /* index in states[] */
    int64_t created;
};
extern const struct duda_schema issue_schema, issue_form;

enum { PAGE_SIZE = 20 };

struct search {
    mk_str q; /* text in the title or description */
    unsigned page;
};
extern const struct duda_schema search_schema;

static inline struct duda_sql_db *db(struct duda_ctx *d)
{
    return duda_sql_find(d, NULL);
}

int find_issue(struct duda_ctx *d, struct issue *issue);
int go_to_issue(struct duda_ctx *d, int64_t id, mk_str message);
int find_issues(struct duda_ctx *d, struct search *search, struct issue **issues, size_t *n);
int insert_issue(struct duda_ctx *d, struct issue *issue);
int mail_author(struct duda_ctx *d, int64_t issue);
int start_mail(struct mk_worker *worker);
int announce(struct duda_ctx *d);

DUDA_ROUTES_DECLARE(api);
DUDA_ROUTES_DECLARE(changes);
DUDA_ROUTES_DECLARE(files);
DUDA_ROUTES_DECLARE(issues);
DUDA_ROUTES_DECLARE(live);
DUDA_ROUTES_DECLARE(tokens);
DUDA_ROUTES_DECLARE(users);
extern const struct duda_session_auth require_login;
