/* SPDX-License-Identifier: Apache-2.0 */
/* Mustache templates, with layouts and filters. */
#ifndef DUDA_TEMPLATE_H
#define DUDA_TEMPLATE_H

#include <duda/value.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A compiled template. It is immutable, so any number of threads may use it.
 *
 * `{{name}}` inserts a value, escaped for HTML: `& < > " '` become character references. `{{{name}}}` and
 * `{{&name}}` insert the value unescaped. A template whose name ends with `.txt`, `.md` or `.csv` escapes
 * nothing, unless it is included in, or extends, a template that escapes values. `{{a.b}}` is the member `b`
 * of the member `a`, and `{{.}}` the current value of the section. Names are looked up in the innermost
 * section first. `{{#name}}...{{/name}}` is a section: it is repeated for each element of a list, rendered
 * once for any other true value, and skipped for false, null, an empty string and an empty list.
 * `{{^name}}...{{/name}}` is an inverted section. `{{>name}}` includes another template (a partial), indented
 * like its tag. `{{! text }}` is a comment. `{{=<% %>=}}` changes the delimiters. A tag that inserts no value
 * is removed together with its line if nothing else is on the line.
 *
 * Layouts: `{{$block}}...{{/block}}` is a block with default content. `{{<layout.html}}...{{/layout.html}}`
 * renders the template layout.html, the parent, and replaces its blocks by the blocks of the same names
 * between the two tags; other text between the tags is ignored. A parent may itself have a parent; the block
 * of the most derived template applies.
 *
 * `{{else}}` in a section begins the text for the opposite case. In a list, `{{@index}}` is the position
 * counted from 0, `{{@number}}` the position counted from 1, and `{{@first}}` and `{{@last}}` are booleans:
 * `{{^@last}}, {{/@last}}`. All other names that begin with `@` are global values: duda_render() provides
 * `{{@user}}`, `{{@csrf_token}}`, `{{@flash}}` and `{{@errors}}` (see duda/render.h).
 *
 * `{{url_for "issue" id=issue.id tab="files"}}` inserts the URL of the route with this name, like
 * duda_url_for(). A parameter is the name of a value, a number, or text in quotes. The query omits null
 * values.
 *
 * Filters change a value, and are applied from left to right: `{{name | truncate 20 | upper}}`. Filters other
 * than `default` and `json` do not change a null or missing value.
 *
 * - `url` percent-encodes a component of a URL: `?q={{query | url}}`
 * - `json` writes the value as JSON, which is also safe inside <script>: `{{{user | json}}}`
 * - `upper` and `lower` change the case of Latin, Greek and Cyrillic letters
 * - `truncate N ["MARK"]` shortens text to at most N characters, including MARK, by default an ellipsis
 * - `default "TEXT"` is TEXT if the value is missing, null, or an empty string or list
 * - `number [D ["SEP"]]` writes a number in groups of three digits, with D decimals; SEP contains the two
 *   separators, by default ",."
 * - `date ["FORMAT"]` formats a timestamp, or seconds since 1970, in UTC like strftime(); by
 *   default, FORMAT is "%F", such as 2026-11-30
 * - `asset` is the URL of an asset: `{{asset "app.css"}}` or `{{file | asset}}`
 *
 * Escaping for HTML protects the content of elements and of quoted attributes, but no other context. Inside
 * <script> use `{{{value | json}}}`, in a URL `{{value | url}}`, and quote every attribute. A URL from a user
 * may begin with `javascript:`, so check it before you put it into `href` or `src`.
 */
struct duda_template;

/** Maximum nesting depth of sections and partials. */
enum { DUDA_TEMPLATE_DEPTH_MAX = 32 };

/**
 * Compiles a template. The text is copied; `name` is used in messages, and its ending
 * decides whether values are escaped. Returns NULL if the template is
 * malformed or memory is exhausted; *error then describes the error and its location: "people.html, line 3,
 * column 5: the section `people` is not closed".
 *
 *     struct duda_template *t = duda_template_new(MK_STR("Hello {{name}}"), "hello", &error);
 */
MK_API struct duda_template *duda_template_new(mk_str text, const char *name,
                                               struct mk_buf *error) MK_API_MUST_USE;
/** Frees the template; NULL is allowed. */
MK_API void duda_template_free(struct duda_template *tmpl);

/** Options for rendering a template. */
struct duda_render_options {
    /** Finds the partial of `{{>name}}`; returns NULL if there is none. May be NULL. */
    const struct duda_template *(*find_partial)(void *ctx, mk_str name);
    void *ctx;
    /** Treats unknown names and missing partials as errors; otherwise they are empty, as Mustache
     * specifies. */
    bool strict;
    /** With `strict`: sections of unknown names are still skipped, as Mustache specifies, and are not
     * errors. */
    bool allows_unknown_sections;
    /** Appends the URL of an asset to `url`, for the filter `asset`. Returns 0, or -ENOENT if there is no
     * such asset. May be NULL. */
    int (*asset_url)(void *ctx, mk_str name, struct mk_buf *url);
    /** Finds a global value, such as `{{@user}}`; `name` is without the `@`. Called for each tag with such a
     * name, whenever the tag is rendered. Returns 0; -ENOENT if there is no such value; or another error,
     * which ends the rendering. May be NULL. */
    int (*find_global)(void *ctx, mk_str name, struct duda_value *out);
    /** Appends the URL of the route `route` to `url`, for `{{url_for "route"}}`. Returns 0, or -EINVAL if the
     * route does not exist or does not allow the parameters: an error with `strict`, otherwise the URL is
     * empty. May be NULL. */
    int (*url_for)(void *ctx, mk_str route, const struct duda_entry *params, size_t n, struct mk_buf *url);
};

/**
 * Renders the template and appends the result to `out`. `options` may be NULL. Returns 0, or a negative errno
 * value, with the error and its location in *error: -ENOENT: a name or partial is missing, and `strict` is
 * set; -ELOOP: nesting is too deep, for example because a template includes itself; -EINVAL: a filter does
 * not apply to the value; -ENOMEM: `out` is full.
 *
 *     struct mk_buf text = mk_buf_growing(1 << 20);
 *     const struct duda_value values = duda_value_members({"name", duda_value_cstr("Ada")});
 *     int e = duda_template_render(hello, &values, &(struct duda_render_options){.strict = true}, &text, &error);
 */
MK_API int duda_template_render_sized(const struct duda_template *tmpl, const struct duda_value *value,
                                      const struct duda_render_options *options, size_t options_size,
                                      struct mk_buf *out, struct mk_buf *error) MK_API_MUST_USE;
static inline MK_API_MUST_USE int duda_template_render(const struct duda_template *tmpl,
                                                       const struct duda_value *value,
                                                       const struct duda_render_options *options,
                                                       struct mk_buf *out, struct mk_buf *error)
{
    return duda_template_render_sized(tmpl, value, options, sizeof *options, out, error);
}

/** A set of named templates. */
struct duda_templates;

/** Creates an empty set; NULL if memory is exhausted. */
MK_API struct duda_templates *duda_templates_new(void) MK_API_MUST_USE;
/** Compiles a template and adds it to the set, replacing one of the same name. Returns 0, -EINVAL with
 * *error, or -ENOMEM. */
MK_API int duda_templates_add(struct duda_templates *templates, const char *name, mk_str text,
                              struct mk_buf *error) MK_API_MUST_USE;
/** Finds the template with that name; NULL if there is none. */
MK_API const struct duda_template *duda_templates_find(const struct duda_templates *templates, mk_str name);
/** Frees the set with all its templates; NULL is allowed. */
MK_API void duda_templates_free(struct duda_templates *templates);

#ifdef __cplusplus
}
#endif

#endif
