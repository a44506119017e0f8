/* SPDX-License-Identifier: Apache-2.0 */
/* Translations (i18n, localization): messages of the service in the language of the client. */
#ifndef DUDA_I18N_H
#define DUDA_I18N_H

#include <duda/service.h>
#include <duda/value.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A service's translations are the files in the folder `translations` next to its object file or, if that
 * folder does not exist, next to its source: one file for each language, such as `en.txt`, `de.txt` or
 * `pt-BR.txt`. The server reads them when it loads the service. A message is a line of the form `key = text`;
 * a line that begins with `#` is a comment. In a message, `{name}` is a placeholder, and `\n` is a line
 * break. Keys consist of letters, digits, `_`, `-` and `.`.
 *
 * The default language is English or, if there is no `en.txt`, the first language in alphabetical order. Its
 * file must contain all keys. If another file lacks a message, clients get the message in the default
 * language. A key that is missing in the file of the default language is a configuration error, and so are a
 * duplicate key and a malformed line.
 */

/**
 * Returns the language of this request, such as "de": the one that duda_set_language() has set, or else the
 * one that the client prefers (Accept-Language). In the second case, the response gets `Vary:
 * Accept-Language`. Returns the default language if the client accepts no language of the service, and in
 * background tasks; NULL if the service has no translations.
 *
 *     int e = duda_header_set(d, "Content-Language", mk_str_from_c(duda_language(d)));
 */
MK_API const char *duda_language(struct duda_ctx *d);
/**
 * Sets the language for the rest of the request, for example to that of the user's profile. Returns 0;
 * -ENOENT: the service has no translations into this language, and nothing changes; or -ENOMEM.
 *
 *     if (duda_set_language(d, duda_query(d, "language")))
 *         return duda_problem(d, 400, "no translations for this language");
 */
MK_API int duda_set_language(struct duda_ctx *d, mk_str language);

/**
 * Returns the message `key` in the language of the request. `params` is a map with the values of the
 * placeholders, or null; a placeholder without a value stays as it is. Values are not escaped: use
 * duda_html_escape() if you write the result into a page without a template. Returns the key if there is no
 * such message. The string is absent if memory is exhausted, and valid until the handler returns.
 *
 *     const struct duda_entry params[] = {{"name", duda_value_text(user)}};
 *     mk_str text = duda_translate(d, "greeting", duda_value_map(params, 1)); // "Guten Tag, Ana"
 */
MK_API mk_str duda_translate(struct duda_ctx *d, const char *key, struct duda_value params) MK_API_MUST_USE;
/** Returns all messages in the language of the request, as a map for templates. If the template gets the map
 * as `t`, as in the example, it shows a message with `{{t.key}}`; such keys must not contain dots.
 *
 *     const struct duda_entry page[] = {{"t", duda_translations(d)}};
 *     return duda_render(d, "home.html", duda_value_map(page, 1));
 */
MK_API struct duda_value duda_translations(struct duda_ctx *d) MK_API_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
