/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of CGI (RFC 3875, section 4.1), which scripts behind FastCGI, SCGI and uwsgi get, too. Its
 * functions are in monkey-upstream.so. */
#ifndef MONKEY_CGI_H
#define MONKEY_CGI_H

#include <monkey/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The script, and what else a gateway decides. Texts live as long as the request. */
struct mk_cgi_options {
    mk_str script_name;     /**< SCRIPT_NAME: the part of the path that leads to it */
    mk_str script_filename; /**< SCRIPT_FILENAME; absent: there is no file */
    mk_str document_root;   /**< DOCUMENT_ROOT */
    mk_str path_info;       /**< what follows the script in the path; empty: nothing */
    mk_str path_translated; /**< the file that path_info would be; absent: not set */
    int64_t length;         /**< of the content; MK_LENGTH_UNKNOWN */
    bool authorization; /**< pass the field Authorization: scripts that check passwords themselves need it */
    const struct mk_field_line *set; /**< variables that the configuration sets; they replace others */
    size_t n_set;
};

/**
 * All variables but CONTENT_LENGTH, which the client adds: those of the request, its fields as HTTP_NAME, and
 * those of TLS under the names of Apache's mod_ssl. Fields whose names could pose as another's (`X_User` as
 * `X-User`), and `Proxy`, are left out. The array and what it points to live as long as the request. 0 or
 * -ENOMEM.
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
