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
 * A service's translations are the files in the folder `translations` next to its object file or, if that does
 * not exist, next to its source: one file for each language, such as `en.txt`, `de.txt` or `pt-BR.txt`. The
 * server reads them when it loads the service. A line is `key = text`; a line that begins with `#` is a comment.
 * In a text, `{name}` is a placeholder, and `\n` a line break. Keys consist of letters, digits, `_`, `-` and `.`.
 *
 * The default language is English or, if there is no `en.txt`, the first in alphabetical order. Its file must
 * have all keys; what other files lack is shown in the default language. A key that the default language lacks is
 * a configuration error with file and line, and so is a malformed line.
 */

/** The language of this request, such as "de": the one of duda_set_language() or else the one that the client
 * prefers (Accept-Language); the response then gets `Vary: Accept-Language`. The default language if the client
 * accepts none of them, and in background tasks; NULL if the service has no translations. */
MK_API const char *duda_language(struct duda_ctx *d);
/** Sets the language for the rest of the request, such as that of the user's profile. -ENOENT: there are no
 * translations for it, and nothing changes; -ENOMEM. */
MK_API int duda_set_language(struct duda_ctx *d, mk_str language);

/**
 * Returns the message `key` in the language of the request. `params` is a map with the values of the
 * placeholders, or null; a placeholder without a value stays as it is. Values are not escaped: use
 * duda_html_escape() if you write the result into a page yourself. Returns the key if there is no such message;
 * absent if memory is exhausted. The string is valid until the handler returns.
 *
 *     const struct duda_entry params[] = {{"name", duda_value_text(user)}};
 *     mk_str text = duda_translate(d, "greeting", duda_value_map(params, 1)); // "Guten Tag, Ana"
 */
MK_API mk_str duda_translate(struct duda_ctx *d, const char *key, struct duda_value params) MK_API_MUST_USE;
/** All messages in the language of the request, as a map for templates, which then use `{{t.key}}`. Use keys
 * without dots for them.
 *
 *     const struct duda_entry page[] = {{"t", duda_translations(d)}};
 *     return duda_render(d, "home.html", duda_value_map(page, 1));
 */
MK_API struct duda_value duda_translations(struct duda_ctx *d) MK_API_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
