/* SPDX-License-Identifier: Apache-2.0 */
/* CGI variables (RFC 3875, section 4.1), which FastCGI, SCGI and uwsgi pass to scripts as well, and the head
 * and the errors of what a script writes. */
#ifndef MONKEY_CGI_H
#define MONKEY_CGI_H

#include <monkey/handler.h>
#include <monkey/plugin.h>

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
    bool underscores; /**< pass fields with an underscore in their names: programs may take them for others */
    bool forwarded;   /**< pass what the client, or a proxy in front, says in Forwarded and its relatives */
    const struct mk_header *set; /**< variables that the configuration sets; they replace others */
    size_t n_set;
};

/**
 * Makes all variables except CONTENT_LENGTH, which the client adds: those of the request, its fields as
 * HTTP_NAME, and TLS variables with the names that Apache's mod_ssl uses. Fields that are not the client's to set
 * (see enum mk_header_role) are left out. The array and what it points to live as long as the request. Returns 0 or
 * -ENOMEM.
 *
 *     struct mk_header *variables;
 *     size_t n;
 *     if (mk_cgi_variables(request, &options, &variables, &n) == 0)
 *         ask.fields = variables, ask.n_fields = n;
 */
MK_API int mk_cgi_variables(struct mk_request *r, const struct mk_cgi_options *o, struct mk_header **out,
                            size_t *n) MK_API_MUST_USE;

/** The head of a script's output (RFC 3875, section 6). Texts are slices of it. */
struct mk_cgi_head {
    unsigned status;        /**< of Status; else 302 with a Location, and 200 without */
    int64_t length;         /**< Content-Length, or MK_LENGTH_UNKNOWN */
    mk_str location;        /**< absent: none */
    bool is_local_redirect; /**< nothing but a Location that is a path of this server (section 6.2.2) */
    const char *problem;    /**< static text: "a line without a colon"; NULL: none */
    mk_str where;           /**< the line with the problem; absent: none in particular */
};

/** Length of the head at the beginning of `text`, including the empty line that ends it; 0: its end has not
 * arrived. The first `seen` bytes were searched before. */
MK_API size_t mk_cgi_head_end(mk_str text, size_t seen);
/**
 * Reads a complete head, including its empty line. False if it is invalid: see `problem`.
 *
 *     struct mk_cgi_head head;
 *     mk_str rest = mk_str_first(output, mk_cgi_head_end(output, 0)), name, value;
 *     if (rest.len && mk_cgi_head_read(&head, rest))
 *         while (mk_cgi_head_next(&rest, &name, &value))
 *             mk_response_add_header(response, name, value);
 */
MK_API bool mk_cgi_head_read(struct mk_cgi_head *h, mk_str text);
/** The next field that goes to the client; *rest is the complete head at first. Leaves out Status,
 * Content-Length, and fields that only the server may set, such as Date. False at the end. */
MK_API bool mk_cgi_head_next(mk_str *rest, mk_str *name, mk_str *value);
/** The status line of a script that writes a whole HTTP response (section 5): 1 and its status, from 100 on;
 * 0: the line is incomplete; -1: it is no status line. */
MK_API int mk_cgi_head_status_line(mk_str text, unsigned *status);

/** Cuts what a script writes to its standard error into lines for a log. Set the first four members; the
 * others must be zero. */
struct mk_cgi_errors {
    void (*say)(void *ctx, mk_str line);
    void *ctx;
    uint64_t left;    /**< bytes that may still become lines; the rest is dropped */
    const char *full; /**< the line to say when `left` reaches 0 */
    uint32_t len;
    char line[800]; /**< longer ones are cut */
};

/** Says each line as soon as it is complete, without its end. NULs become question marks. */
MK_API void mk_cgi_errors_add(struct mk_cgi_errors *e, mk_str text);
/** Says an incomplete last line. */
MK_API void mk_cgi_errors_end(struct mk_cgi_errors *e);

#ifdef __cplusplus
}
#endif

#endif
