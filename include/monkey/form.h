/* SPDX-License-Identifier: Apache-2.0 */
/* HTML forms: receives the form in a request body, and parses urlencoded text, such as query strings. In the
 * program `monkey`, these functions are in monkey-readers.so (docs/guide/plugins.md). */
#ifndef MONKEY_FORM_H
#define MONKEY_FORM_H

#include <monkey/allocator.h>
#include <monkey/buf.h>
#include <monkey/multipart.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mk_request;
struct mk_spool;

/** A field of a form. Both strings are NUL-terminated; the lengths exclude the NUL. */
struct mk_form_field {
    mk_str name, value;
};

/** An uploaded file. Its data is a part of the request body, which the server keeps in memory or in an
 * unlinked file in `SpoolFolder` until the request ends. Strings are NUL-terminated. */
struct mk_upload {
    mk_str name;         /**< name of the form field */
    mk_str file_name;    /**< as sent by the client; see mk_file_name_clean() */
    mk_str content_type; /**< as sent by the client; absent if not sent */
    uint64_t size;
    uint64_t offset;      /**< offset of the file in the request body */
    uint64_t reserved[1]; /**< zero */
};

/** A form: its fields and files in the order received. */
struct mk_form {
    const struct mk_form_field *fields;
    size_t n;
    const struct mk_upload *uploads;
    size_t n_uploads;
    uint64_t reserved[2]; /**< zero */
};

/** Limits of a form. A zero member selects its default. */
struct mk_form_limits {
    size_t size;          /**< bytes of the encoded form, without files; default: 1 MB */
    size_t fields;        /**< number of fields; default: 256 */
    size_t name;          /**< bytes of a name; default: 256 */
    size_t value;         /**< bytes of a value; default: 64 KB */
    uint64_t reserved[4]; /**< must be zero */
};

/** Returns the limits with the defaults filled in. Thread-safe. */
MK_API struct mk_form_limits mk_form_limits_of(const struct mk_form_limits *limits);

/* ---- Forms of requests ---- */

/**
 * Receives the form in the body of a request: urlencoded, or multipart with files. Call it from the handler,
 * and return MK_WAIT each time it returns -EAGAIN: the handler is called again when more of the form has
 * arrived. It returns 0 when the form is complete; *form and its strings then live as long as the request.
 * `fields` limits the text of the form, `files` the whole multipart body and each file: by default 32 MB and
 * 16 MB, but no more than `MaxBodySize`. Both may be NULL. Later calls return the same result.
 *
 * Errors: -EMEDIUMTYPE: the body is not a form, or has a Content-Encoding; -EBADMSG: it is malformed;
 * -EMSGSIZE: a limit, or `MaxBodySize`, is exceeded; -ENOMEM; -ECONNRESET: the client disconnected; and the
 * errors of mk_spool_request(). mk_form_status() maps each error to a status. Multipart forms above 64 KB
 * fail with -EOPNOTSUPP (500) without mk_server_enable_body_spool() or mk_config_enable_body_spool().
 *
 *     const struct mk_form *form;
 *     int e = mk_request_form(request, NULL, NULL, &form);
 *     if (e == -EAGAIN)
 *         return MK_WAIT;
 *     if (e) {
 *         mk_response_set_status(response, mk_form_status(e));
 *         return MK_ERROR;
 *     }
 *     mk_str name = mk_form_get(form, "name");
 */
MK_API int mk_request_form(struct mk_request *request, const struct mk_form_limits *fields,
                           const struct mk_multipart_limits *files,
                           const struct mk_form **form) MK_API_MUST_USE;
/** After an error of mk_request_form() or mk_request_multipart(): the violated rule or limit, NUL-terminated;
 * absent if the error does not concern the text of the form. Lives as long as the request. */
MK_API mk_str mk_request_form_error(const struct mk_request *request);
/** The response status for a form that could not be received: 400, 413, 415, 500, 503 or 507. */
MK_API unsigned mk_form_status(int error);
/**
 * Copies up to `cap` bytes of an uploaded file, starting at `offset`. Returns the number of bytes, which may
 * be less than `cap`, 0 at the end of the file, or a negative errno value. To read the whole file, repeat the
 * call until it returns 0. May block on disk I/O: to store large files, pass a duplicate of
 * mk_spool_fd(mk_request_form_spool()) to a thread of mk_worker_offload(). In this descriptor, the file
 * begins at `upload->offset`.
 *
 *     char buf[4096];
 *     ssize_t n;
 *     for (uint64_t at = 0; (n = mk_upload_read(request, file, buf, sizeof buf, at)) > 0; at += (uint64_t)n)
 *         mk_buf_add(&out, mk_str_of(buf, (size_t)n));
 */
MK_API ssize_t mk_upload_read(const struct mk_request *request, const struct mk_upload *upload, char *buf,
                              size_t cap, uint64_t offset) MK_API_MUST_USE;
/** The spooled body of a multipart form that mk_request_form() has received; NULL for other requests. */
MK_API struct mk_spool *mk_request_form_spool(const struct mk_request *request);

/**
 * Parses the query of a request as a form. *form lives as long as the request. Returns the results of
 * mk_form_parse(); a request without a query has an empty form.
 *
 *     struct mk_form form;
 *     int e = mk_request_query_form(request, NULL, &form);
 *     if (e) {
 *         mk_response_set_status(response, mk_form_status(e));
 *         return MK_ERROR;
 *     }
 *     mk_str q = mk_form_get(&form, "q");
 */
MK_API int mk_request_query_form(struct mk_request *request, const struct mk_form_limits *limits,
                                 struct mk_form *form) MK_API_MUST_USE;

/** The value of the first field with that name. Absent if there is none; an empty field is present, with
 * length 0. Thread-safe. */
MK_API mk_str mk_form_get(const struct mk_form *form, const char *name);
/** The value of the i-th field with that name; absent if there are fewer. Thread-safe. */
MK_API mk_str mk_form_get_at(const struct mk_form *form, const char *name, size_t i);
/**
 * The first file of the field with that name; NULL if there is none. A file field that the user left empty
 * does not count. Thread-safe.
 *
 *     const struct mk_upload *photo = mk_form_upload(&form, "photo");
 *     if (!photo) {
 *         mk_response_set_status(response, 422);
 *         return MK_ERROR;
 *     }
 */
MK_API const struct mk_upload *mk_form_upload(const struct mk_form *form, const char *name);

/* ---- Forms as text ---- */

/**
 * Parses application/x-www-form-urlencoded data, such as request bodies and query strings: `a=1&b=x+y%21`.
 * The fields are allocated from `memory`; `limits` may be NULL. Returns 0; -EBADMSG: a `%` without two
 * hexadecimal digits (400); -EMSGSIZE: a limit is exceeded (413); -ENOMEM. Thread-safe.
 *
 *     struct mk_form fields;
 *     int e = mk_form_parse(MK_STR("name=Ana&tag=x&tag=y"), &memory, NULL, &fields);
 *     mk_str name = mk_form_get(&fields, "name");
 */
MK_API int mk_form_parse(mk_str text, const struct mk_allocator *memory, const struct mk_form_limits *limits,
                         struct mk_form *out) MK_API_MUST_USE;
/**
 * Parses a multipart form that was received into a spool, for programs that receive the body themselves
 * instead of with mk_request_form(). `boundary` is the result of mk_multipart_boundary(). Returns 0;
 * -EBADMSG; -EMSGSIZE; -ENOMEM; or an error of mk_spool_read(). On error, *error is the violated rule or
 * limit, allocated from `memory`, or absent if the form violates none.
 */
MK_API int mk_form_parse_spool(const struct mk_spool *body, mk_str boundary,
                               const struct mk_allocator *memory, const struct mk_form_limits *fields,
                               const struct mk_multipart_limits *files, struct mk_form *out,
                               mk_str *error) MK_API_MUST_USE;

/** The first content coding of the request body other than `identity`; absent if there is none. The functions
 * for forms and JSON do not decode bodies: a request with a coding gets 415. */
MK_API mk_str mk_request_content_coding(const struct mk_request *request);

#ifdef __cplusplus
}
#endif

#endif
