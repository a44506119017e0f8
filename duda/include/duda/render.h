/* SPDX-License-Identifier: Apache-2.0 */
/* Renders the templates of a service. */
#ifndef DUDA_RENDER_H
#define DUDA_RENDER_H

#include <duda/service.h>
#include <duda/template.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Renders the template with that name into the response (see duda/template.h).
 *
 * A service's templates are the files in the folder `templates` next to its object file or, if that folder
 * does not exist, next to its source. The server compiles them when it loads the service; a mistake in a
 * template is a configuration error with file, line and column. A template includes another by its file name:
 * `{{>head.html}}`. The name of a file in a subfolder is its path: `admin/users.html`. The Content-Type is
 * text/html, or text/plain if the name ends with `.txt`, `.md` or `.csv`, unless the handler has set one. In
 * these text files, values are not escaped for HTML.
 *
 * Returns 0, or a negative errno value to return from the handler; -EINVAL, with an entry in the error log:
 * there is no such template.
 *
 *     const struct duda_entry page[] = {{"name", duda_value_text(duda_query(d, "name"))}};
 *     return duda_render(d, "hello.html", duda_value_map(page, MK_LEN(page)));
 *
 * All templates have these values, which are computed only if a template contains them:
 *
 * | name | value |
 * |---|---|
 * | `@user` | the user of the session (see duda_session_user()); null if no user is logged in |
 * | `@csrf_token` | a CSRF token (see duda_csrf_token()) |
 * | `@flash` | the flash messages, each with `category` and `text`; deletes them (see duda_flash_take()) |
 * | `@errors` | the errors of the last duda_bind_form(), each with `message`, `pointer` and `code` |
 * | `@errors.NAME` | the first error message of the field or list NAME; null if there is none |
 *
 * For example, `{{#@flash}}<p class="{{category}}">{{text}}</p>{{/@flash}}` shows the flash messages. A form
 * contains `<input type=hidden name=csrf_token value="{{@csrf_token}}">`, and shows an error next to its
 * field: `<input name=title> {{@errors.title}}`. If one of the values cannot be read, for example because the
 * session store is unavailable, duda_render() returns that error.
 */
MK_API int duda_render(struct duda_ctx *d, const char *name, struct duda_value value);
/** Flag of duda_render_to_string(): URLs are absolute. */
enum { DUDA_RENDER_ABSOLUTE_URLS = 1 };
/**
 * Renders a template into a string, for mails, messages and parts of a page. Works in background tasks and
 * jobs as well. There, or with the flag DUDA_RENDER_ABSOLUTE_URLS, the URLs of `{{url_for}}` and of assets
 * are absolute: they begin with `PublicUrl` of [DUDA]. Without a request, `@user`, `@csrf_token` and `@flash`
 * are null.
 *
 *     mk_str text;
 *     const struct duda_value values = duda_value_members({"id", duda_value_integer(7)});
 *     int e = duda_render_to_string(d, "mail.txt", values, DUDA_RENDER_ABSOLUTE_URLS, &text);
 *
 * In a text file, such as `mail.txt`, values are inserted as they are; in a page, they are escaped for HTML.
 *
 * Sets *out to the text, which lives until the handler returns. Returns 0; -EINVAL, with an entry in the
 * error log: there is no such template, or its URLs must be absolute and `PublicUrl` is not set; or another
 * negative errno value.
 */
MK_API int duda_render_to_string(struct duda_ctx *d, const char *name, struct duda_value value,
                                 unsigned flags, mk_str *out) MK_API_MUST_USE;
/**
 * Renders a template given as text, which is compiled for this call. Values are escaped for HTML.
 *
 *     const struct duda_value page = duda_value_members({"name", duda_value_text(duda_query(d, "name"))});
 *     return duda_render_text(d, MK_STR("<p>Hello {{name}}"), page);
 */
MK_API int duda_render_text(struct duda_ctx *d, mk_str text, struct duda_value value);

/** Renders the page of a form: the template sees the members of the struct as `form`, such as
 * `{{form.title}}`. The status is 422 if the last duda_bind_form() of this request found errors. Returns
 * the result of duda_render(). */
MK_API int duda_render_form(struct duda_ctx *d, const char *name, const struct duda_schema *schema,
                            const void *form);
/**
 * Fills a struct from the form, like duda_bind_form(). If the form is invalid, shows it again with the text
 * that the user entered and with the errors: calls duda_render_form() with the template `name`. Returns 0 if
 * the form is valid. Return any other result from the handler.
 *
 *     static int show(struct duda_ctx *d)
 *     {
 *         struct person person = {.age = 18};
 *         return duda_render_form(d, "person.html", &person_schema, &person);
 *     }
 *
 *     static int save(struct duda_ctx *d)
 *     {
 *         struct person person = {.age = 18};
 *         int e = duda_bind_form_or_render(d, &person_schema, &person, "person.html");
 *         return e ? e : duda_redirect(d, 303, MK_STR("/people"));
 *     }
 */
MK_API duda_verdict duda_bind_form_or_render_checked(struct duda_ctx *d, const struct duda_schema *schema,
                                                     void *out, size_t size,
                                                     const char *name) MK_API_MUST_USE;
#ifndef __cplusplus
/** Calls the function above with the size of the struct, like duda_bind_form(). */
#define duda_bind_form_or_render(d, schema, out, name)                                                       \
    duda_bind_form_or_render_checked(d, schema, out, sizeof *(out), name)
#endif

#ifdef __cplusplus
}

template <typename type>
static inline MK_API_MUST_USE duda_verdict duda_bind_form_or_render(struct duda_ctx *d,
                                                                    const struct duda_schema *schema,
                                                                    type *out, const char *name)
{
    return duda_bind_form_or_render_checked(d, schema, out, sizeof *out, name);
}
#endif

#endif
