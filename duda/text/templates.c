/* SPDX-License-Identifier: Apache-2.0 */
/* Templates by name. A list suffices: a service has few templates, and looks up a name once per page. */
#include <errno.h>
#include <monkey/mem.h>

#include "text/template.h"

struct duda_templates {
    struct duda_template **at;
    size_t n;
};

struct duda_templates *duda_templates_new(void)
{
    return mk_mem_zalloc(1, sizeof(struct duda_templates));
}

static struct duda_template **find_template_slot(const struct duda_templates *set, mk_str name)
{
    for (size_t i = 0; i < set->n; i++)
        if (mk_str_eq(mk_str_from_c(set->at[i]->name), name))
            return &set->at[i];
    return NULL;
}

int duda_templates_add(struct duda_templates *set, const char *name, mk_str text, struct mk_buf *error)
{
    struct duda_template *t = duda_template_new(text, name, error);
    struct duda_template **slot = t ? find_template_slot(set, mk_str_from_c(name)) : NULL;
    if (!t)
        return -EINVAL;
    if (slot) {
        duda_template_free(*slot);
        *slot = t;
        return 0;
    }
    struct duda_template **at = mk_mem_realloc(set->at, (set->n + 1) * sizeof(struct duda_template *));
    if (!at) {
        duda_template_free(t);
        mk_buf_add(error, MK_STR("out of memory"));
        return -ENOMEM;
    }
    set->at = at;
    set->at[set->n++] = t;
    return 0;
}

const struct duda_template *duda_templates_find(const struct duda_templates *set, mk_str name)
{
    struct duda_template **slot = find_template_slot(set, name);
    return slot ? *slot : NULL;
}

static void visit_urls_of_template(const struct duda_template *t,
                                   void (*visit)(void *ctx, const struct duda_template_url *url), void *ctx)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct duda_template_node *node = &t->nodes[i];
        if (node->kind != DUDA_NODE_URL && node->kind != DUDA_NODE_URL_UNESCAPED)
            continue;
        const struct duda_template_url url = {.route = node->text,
                                              .params =
                                                  node->params.n ? &t->params[node->params.first] : NULL,
                                              .n_params = node->params.n,
                                              .tmpl = t,
                                              .at = node->at};
        visit(ctx, &url);
    }
}

void duda_templates_visit_urls(const struct duda_templates *set,
                               void (*visit)(void *ctx, const struct duda_template_url *url), void *ctx)
{
    for (size_t i = 0; i < set->n; i++)
        visit_urls_of_template(set->at[i], visit, ctx);
}

void duda_templates_free(struct duda_templates *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < set->n; i++)
        duda_template_free(set->at[i]);
    mk_mem_free(set->at);
    mk_mem_free(set);
}
