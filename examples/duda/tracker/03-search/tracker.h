/* SPDX-License-Identifier: Apache-2.0 */
#define DUDA_USE "duda-sql"
#include <duda.h>
#include <duda/sql.h>
#include <errno.h>

struct issue {
    int64_t id;
    mk_str title, text, author;
    unsigned state; /* index in states[] */
    int64_t created;
};
extern const struct duda_schema issue_schema;

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
int find_issues(struct duda_ctx *d, struct search *search, struct issue **issues, size_t *n);

DUDA_ROUTES_DECLARE(issues);
