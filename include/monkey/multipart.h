/* SPDX-License-Identifier: Apache-2.0 */
/* Incremental parser for multipart/form-data (RFC 7578), the format of file uploads. In the program `monkey`,
 * these functions are in monkey-readers.so (docs/guide/plugins.md). */
#ifndef MONKEY_MULTIPART_H
#define MONKEY_MULTIPART_H

#include <monkey/allocator.h>
#include <monkey/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The headers of a part. The strings are valid during the callback and not NUL-terminated. */
struct mk_multipart_part {
    mk_str name;
    /** The file name that the client sent, in `filename` or `filename*`. Do not trust it, and never use it as
     * a path. Absent: the part is not a file. */
    mk_str file_name;
    mk_str content_type; /**< media type; absent if not sent */
};

/** Limits for parsing. A zero member selects its default. */
struct mk_multipart_limits {
    uint64_t size;        /**< bytes of the whole body; default: 32 MB */
    uint64_t file;        /**< bytes of one file; default: 16 MB */
    uint64_t value;       /**< bytes of a part that is not a file; default: 64 KB */
    size_t parts;         /**< number of parts; default: 256 */
    size_t head;          /**< bytes of the headers of one part; default: 4 KB, maximum: MK_PART_HEAD_MAX */
    size_t name;          /**< bytes of a name, and of a file name; default: 256 */
    uint64_t reserved[4]; /**< must be zero */
};

/** Returns the limits with the defaults filled in; `limits` may be NULL. */
MK_API struct mk_multipart_limits mk_multipart_limits_of(const struct mk_multipart_limits *limits);

/** Upper bound for the `head` limit, in bytes. */
enum { MK_PART_HEAD_MAX = 16 * 1024 };

/** The parser's callbacks. Each returns 0, or a negative errno value, which stops the parser and becomes its
 * result. */
struct mk_multipart_ops {
    int (*part)(void *ctx, const struct mk_multipart_part *part); /**< a part starts */
    int (*data)(void *ctx, mk_str bytes);                         /**< the next bytes of the part */
    int (*end)(void *ctx);                                        /**< the part is complete; may be NULL */
    uint64_t reserved[2];                                         /**< must be zero */
};

/** A multipart parser. */
struct mk_multipart;

/** Maximum length of a boundary in bytes (RFC 2046, section 5.1.1). */
enum { MK_BOUNDARY_MAX = 70 };

/** Extracts the boundary from a Content-Type. Returns false if the type is not multipart/form-data, or if the
 * boundary is missing or malformed. The result is a slice of `type`. */
MK_API bool mk_multipart_boundary(mk_str type, mk_str *out) MK_API_MUST_USE;

/**
 * Creates a parser; NULL if memory is exhausted, or if the boundary is empty or longer than MK_BOUNDARY_MAX.
 * Free it with mk_multipart_free(). `limits` may be NULL; `ops` must outlive the parser. Thread-safe.
 *
 *     struct mk_multipart *m = mk_multipart_new(boundary, NULL, &ops, ctx);
 *     while (!e && (n = read_more(buf, sizeof buf)) > 0)
 *         e = mk_multipart_feed(m, mk_str_of(buf, n));
 *     if (!e)
 *         e = mk_multipart_end(m);
 *     mk_multipart_free(m);
 */
MK_API struct mk_multipart *mk_multipart_new(mk_str boundary, const struct mk_multipart_limits *limits,
                                             const struct mk_multipart_ops *ops, void *ctx) MK_API_MUST_USE;
/** Parses the next bytes. Returns 0; -EBADMSG: malformed (400); -EMSGSIZE: a limit is exceeded (413); or the
 * error of a callback. Errors are sticky. */
MK_API int mk_multipart_feed(struct mk_multipart *multipart, mk_str bytes) MK_API_MUST_USE;
/** Marks the end of the input. Returns 0, or -EBADMSG if the last part is incomplete. */
MK_API int mk_multipart_end(struct mk_multipart *multipart) MK_API_MUST_USE;
/** After an error: a description of the violated rule or limit, or NULL if a callback failed. *part is the
 * number of parts that had started. */
MK_API const char *mk_multipart_error(const struct mk_multipart *multipart, size_t *part);
/** For use in data(): the offset, within the body, of the bytes that data() received. */
MK_API uint64_t mk_multipart_offset(const struct mk_multipart *multipart);
/** Frees the parser; NULL is allowed. */
MK_API void mk_multipart_free(struct mk_multipart *multipart);

struct mk_request;
/**
 * Receives an upload part by part as it arrives, in constant memory: for files that the handler forwards, or
 * stores elsewhere. Call it from the handler with the same arguments each time, and return MK_WAIT each time
 * it returns -EAGAIN: the handler is called again when more data has arrived. The callbacks run inside this
 * function, in the thread of the worker; they must not block, and must not return -EAGAIN. Use either this
 * function or mk_request_form() (monkey/form.h) for a request.
 *
 * Returns 0 when all parts have been received. Errors are those of mk_request_form() and of the callbacks;
 * mk_form_status() maps them to a status, and mk_request_form_error() describes them.
 *
 *     int e = mk_request_multipart(request, NULL, &ops, upload);
 *     if (e == -EAGAIN)
 *         return MK_WAIT;
 */
MK_API int mk_request_multipart(struct mk_request *request, const struct mk_multipart_limits *limits,
                                const struct mk_multipart_ops *ops, void *ctx) MK_API_MUST_USE;

/**
 * Derives a safe file name from a client's file name: the last path component, up to 100 bytes. Letters,
 * digits, visible non-ASCII characters, `-`, `_` and single dots stay, except a leading dot. Everything else
 * becomes `_`: spaces, punctuation, invisible characters, characters that change the text direction, and
 * invalid UTF-8. The sequences %22, %0D and %0A, which browsers send for a quote, a CR and an LF, each count
 * as one character. The result is "file" if nothing is left. Different names may have the same result, so use
 * the result only for display, not to store files.
 */
MK_API void mk_file_name_clean(struct mk_buf *out, mk_str file_name);

#ifdef __cplusplus
}
#endif

#endif
