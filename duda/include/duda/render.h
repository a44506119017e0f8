/* SPDX-License-Identifier: Apache-2.0 */
/* Pages by the templates of a service. */
#ifndef DUDA_RENDER_H
#define DUDA_RENDER_H

#include <duda/service.h>
#include <duda/template.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Says the template of that name, filled (see duda/template.h).
 *
 * The templates of a service are the files in the folder `templates` beside its object or, if there is none,
 * beside its source. The server compiles them when it loads the service: a mistake in one of them is an error
 * of the configuration, with file, line and column. A template brings another one by its file name:
 * `{{>head.html}}`. The content is HTML, unless a Content-Type was set, or the name ends with ".txt".
 *
 * 0, or what the handler returns: a negated errno value; -EINVAL, with a line in the error log, if there is
 * no such template.
 *
 *     const struct duda_entry page[] = {{"name", duda_value_text(duda_query(d, "name"))}};
 *     return duda_render(d, "hello.html", duda_value_map(page, MK_LEN(page)));
 */
MK_API int duda_render(struct duda_ctx *d, const char *name, struct duda_value value);
/** The same for a template that is a text of the source, which is compiled for this call. */
MK_API int duda_render_text(struct duda_ctx *d, mk_str text, struct duda_value value);

#ifdef __cplusplus
}
#endif

#endif
