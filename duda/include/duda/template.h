/* SPDX-License-Identifier: Apache-2.0 */
/* Templates in the language Mustache: text with places that values fill. */
#ifndef DUDA_TEMPLATE_H
#define DUDA_TEMPLATE_H

#include <duda/value.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A template, compiled. It never changes, so any number of threads may use it.
 *
 * `{{name}}` is a value as HTML text: `& < > " '` become references. `{{{name}}}` and `{{&name}}` are the
 * value as it is. `{{a.b}}` is a member of a member, `{{.}}` the value of the section itself. A name is
 * looked for in the innermost section first.
 * `{{#name}}...{{/name}}` is repeated for each element of a list, done once for anything else that is true,
 * and left out otherwise: false, nothing, an empty text, an empty list. `{{^name}}...{{/name}}` is its
 * opposite.
 * `{{>name}}` is another template, indented as its tag is. `{{! a comment }}`. `{{=<% %>=}}` changes what
 * tags begin and end with. A tag of these alone on its line takes the line with it.
 */
struct duda_template;

/** The deepest nesting of sections and of templates inside of each other. */
enum { DUDA_TEMPLATE_DEPTH = 32 };

/**
 * Compiles a text, which is copied. `name` is for messages. NULL: it is malformed or memory is out, and *why
 * says what is wrong and where: "people.html, line 3, column 5: the section `people` is not closed".
 *
 *     struct duda_template *t = duda_template_new(MK_STR("Hello {{name}}"), "hello", &why);
 */
MK_API struct duda_template *duda_template_new(mk_str text, const char *name,
                                               struct mk_buf *why) MK_API_MUST_USE;
/** NULL is fine. */
MK_API void duda_template_free(struct duda_template *t);

/** How a template is filled. */
struct duda_rendering {
    /** Finds the template that `{{>name}}` means; NULL if there is none. May be NULL itself. */
    const struct duda_template *(*find)(void *ctx, mk_str name);
    void *ctx;
    /** Names that no value has, and templates that are not there, are errors; else they are empty, as the
     * language wants it. */
    bool strict;
    /** Without `strict`: called for each such name or template, with its place: "a.html, line 3, column 5: ...".
     * May be NULL. */
    void (*missing)(void *ctx, mk_str what);
};

/**
 * Writes the template, filled, behind what is in `out`. `how` may be NULL. 0, or a negated errno value, with
 * the reason and its place in *why: -ENOENT: a name or template is missing, and `how` is strict; -ELOOP:
 * nested too deep, such as a template that brings itself for ever; -ENOMEM: `out` has no more room.
 */
MK_API int duda_template_render(const struct duda_template *t, const struct duda_value *value,
                                const struct duda_rendering *how, struct mk_buf *out,
                                struct mk_buf *why) MK_API_MUST_USE;

/** Templates by name. */
struct duda_templates;

/** An empty set; NULL: no memory. */
MK_API struct duda_templates *duda_templates_new(void) MK_API_MUST_USE;
/** Compiles a template into the set, in the place of one of the same name. 0, or -EINVAL with *why, or
 * -ENOMEM.
 */
MK_API int duda_templates_add(struct duda_templates *set, const char *name, mk_str text,
                              struct mk_buf *why) MK_API_MUST_USE;
/** The one of that name, or NULL. */
MK_API const struct duda_template *duda_templates_find(const struct duda_templates *set, mk_str name);
/** The set with all its templates. NULL is fine. */
MK_API void duda_templates_free(struct duda_templates *set);

#ifdef __cplusplus
}
#endif

#endif
