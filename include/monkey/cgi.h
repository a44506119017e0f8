/* SPDX-License-Identifier: Apache-2.0 */
/* CGI variables (RFC 3875, section 4.1), which FastCGI, SCGI and uwsgi pass to scripts as well. The functions
 * are in monkey-upstream.so. */
#ifndef MONKEY_CGI_H
#define MONKEY_CGI_H

#include <monkey/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The script, and other choices of a gateway. Texts must live as long as the request. */
struct mk_cgi_options {
    mk_str script_name;     /**< SCRIPT_NAME: the part of the path that leads to it */
    mk_str script_filename; /**< SCRIPT_FILENAME; absent: there is no file */
    mk_str document_root;   /**< DOCUMENT_ROOT */
    mk_str path_info;       /**< PATH_INFO: the rest of the path behind the script; may be empty */
    mk_str path_translated; /**< PATH_TRANSLATED: path_info as a file name; absent: not set */
    int64_t length;         /**< of the content, or MK_LENGTH_UNKNOWN */
    bool authorization;     /**< pass the field Authorization, for scripts that check passwords themselves */
    const struct mk_field_line *set; /**< variables that the configuration sets; they replace others */
    size_t n_set;
};

/**
 * Makes all variables except CONTENT_LENGTH, which the client adds: those of the request, its fields as
 * HTTP_NAME, and TLS variables with the names that Apache's mod_ssl uses. Fields with names that could be
 * mistaken for another's (`X_User` for `X-User`), and `Proxy`, are left out. The array and what it points to
 * live as long as the request. Returns 0 or -ENOMEM.
 *
 *     struct mk_field_line *variables;
 *     size_t n;
 *     if (mk_cgi_variables(request, &options, &variables, &n) == 0)
 *         ask.fields = variables, ask.n_fields = n;
 */
MK_API int mk_cgi_variables(struct mk_request *r, const struct mk_cgi_options *o, struct mk_field_line **out,
                            size_t *n) MK_API_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
