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
 * A service's templates are the files in the folder `templates` next to its object file or, if that does not
 * exist, next to its source. The server compiles them when it loads the service; a mistake in a template is a
 * configuration error with file, line and column. A template includes another by its file name:
 * `{{>head.html}}`. Files in subfolders are named by their path: `admin/users.html`. The Content-Type is text/html, unless the handler has set one or the name ends with
 * ".txt".
 *
 * Returns 0, or a negative errno value to return from the handler; -EINVAL, with an entry in the error log:
 * there is no such template.
 *
 *     const struct duda_entry page[] = {{"name", duda_value_text(duda_query(d, "name"))}};
 *     return duda_render(d, "hello.html", duda_value_map(page, MK_LEN(page)));
 */
MK_API int duda_render(struct duda_ctx *d, const char *name, struct duda_value value);
/** Renders a template given as text, which is compiled for this call. */
MK_API int duda_render_text(struct duda_ctx *d, mk_str text, struct duda_value value);

#ifdef __cplusplus
}
#endif

#endif
