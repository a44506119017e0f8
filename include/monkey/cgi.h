/* SPDX-License-Identifier: Apache-2.0 */
/* CGI variables (RFC 3875, section 4.1), which FastCGI, SCGI and uwsgi also use, and parsers for the head and
 * the standard error output of scripts. */
#ifndef MONKEY_CGI_H
#define MONKEY_CGI_H

#include <monkey/handler.h>
#include <monkey/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The script, and options for its variables. Strings must live as long as the request. */
struct mk_cgi_options {
    mk_str script_name;     /**< SCRIPT_NAME: the part of the path that identifies the script */
    mk_str script_filename; /**< SCRIPT_FILENAME; absent: no file */
    mk_str document_root;   /**< DOCUMENT_ROOT */
    mk_str path_info;       /**< PATH_INFO: the rest of the path after the script; may be empty */
    mk_str path_translated; /**< PATH_TRANSLATED: path_info as a file name; absent: not set */
    int64_t length;         /**< length of the request body, or MK_LENGTH_UNKNOWN */
    bool authorization;     /**< pass the Authorization header, for scripts that check passwords themselves */
    bool underscores;       /**< pass headers whose names contain underscores, although programs may confuse
                                 them with other headers */
    bool forwarded;         /**< pass Forwarded and related headers from the client or another proxy */
    const struct mk_header *overrides; /**< variables from the configuration; they override all other
                                            variables */
    size_t n_overrides;
};

/**
 * Creates all variables except CONTENT_LENGTH, which the upstream request adds: the request metadata, the
 * request headers as HTTP_NAME, and TLS variables with the names that Apache's mod_ssl uses. Headers that a
 * client is not allowed to set (see enum mk_header_role) are omitted. The array and its strings live as long
 * as the request. Returns 0 or -ENOMEM.
 *
 *     struct mk_header *variables;
 *     size_t n;
 *     if (mk_cgi_variables(request, &options, &variables, &n) == 0)
 *         ask.headers = variables, ask.n_headers = n;
 */
MK_API int mk_cgi_variables_sized(struct mk_request *request, const struct mk_cgi_options *options,
                                  size_t options_size, struct mk_header **out, size_t *n) MK_API_MUST_USE;
static inline MK_API_MUST_USE int mk_cgi_variables(struct mk_request *request,
                                                   const struct mk_cgi_options *options,
                                                   struct mk_header **out, size_t *n)
{
    return mk_cgi_variables_sized(request, options, sizeof *options, out, n);
}

/** The head of a script's output (RFC 3875, section 6). Strings are slices of that output. */
struct mk_cgi_head {
    unsigned status;        /**< from the Status header; without it, 302 if there is a Location, else 200 */
    int64_t length;         /**< Content-Length, or MK_LENGTH_UNKNOWN */
    mk_str location;        /**< the Location header; absent: none */
    bool is_local_redirect; /**< only a Location, which is a path on this server (section 6.2.2) */
    const char *error;      /**< static text: "a line without a colon"; NULL: no error */
    mk_str error_line;      /**< the invalid line; absent: the error concerns no particular line */
};

/** Returns the length of the head at the beginning of `text`, including the empty line that ends it; 0
 * if the head is incomplete. `seen` is the number of bytes that earlier calls have searched. */
MK_API size_t mk_cgi_head_end(mk_str text, size_t seen);
/**
 * Parses a complete head, including its empty line. Returns false if it is invalid: see `error`.
 *
 *     struct mk_cgi_head head;
 *     mk_str rest = mk_str_first(output, mk_cgi_head_end(output, 0)), name, value;
 *     if (rest.len && mk_cgi_head_read(&head, rest))
 *         while (mk_cgi_head_next(&rest, &name, &value))
 *             mk_response_add_header(response, name, value);
 */
MK_API bool mk_cgi_head_read_sized(struct mk_cgi_head *head, size_t head_size, mk_str text);
static inline bool mk_cgi_head_read(struct mk_cgi_head *head, mk_str text)
{
    return mk_cgi_head_read_sized(head, sizeof *head, text);
}
/** Returns the next header to pass to the client; *rest is initially the complete head. Skips Status,
 * Content-Length, and headers that only the server may set, such as Date. Returns false at the end. */
MK_API bool mk_cgi_head_next(mk_str *rest, mk_str *name, mk_str *value);
/** Parses the status line of a script that writes a complete HTTP response (section 5). Returns 1 and sets
 * *status, which is at least 100; 0 if the line is incomplete; -1 if it is not a status line. */
MK_API int mk_cgi_head_status_line(mk_str text, unsigned *status);

/** Splits the standard error output of a script into log lines. Set the first four members, and zero
 * the others. */
struct mk_cgi_stderr {
    void (*on_line)(void *ctx, mk_str line);
    void *ctx;
    uint64_t remaining;        /**< bytes that may still be logged; further output is discarded */
    const char *limit_message; /**< the line to log when `remaining` reaches 0 */
    uint32_t len;
    char line[800];       /**< longer lines are truncated */
    uint64_t reserved[2]; /**< for later releases */
};

/** Passes each complete line to on_line(), without its line ending. NUL bytes become question marks. */
MK_API void mk_cgi_stderr_add(struct mk_cgi_stderr *output, mk_str text);
/** Passes an incomplete last line to on_line(). */
MK_API void mk_cgi_stderr_flush(struct mk_cgi_stderr *output);

#ifdef __cplusplus
}
#endif

#endif
