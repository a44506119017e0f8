/* SPDX-License-Identifier: Apache-2.0 */
/* Submitted forms: their fields and uploaded files. */
#ifndef DUDA_UPLOAD_H
#define DUDA_UPLOAD_H

/* A function and a struct in this header have the same name, which is valid C++, but some compilers warn
 * about it. */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC system_header
#endif

#include <duda/form.h>
#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Receives the form: urlencoded, or multipart with files. Waits. Unless you call it, the first of the
 * functions below receives the form with the default limits. Returns 0 on success. Return any other result
 * from the handler: 415 (not a form), 413 (a limit is exceeded), 400 (malformed), 503 or 507 (the server is
 * out of memory or disk space), or the error of a failed wait. Later calls return the same result.
 *
 *     int e = duda_form_load(d, NULL, &(struct mk_multipart_limits){.size = 8 << 20, .file = 8 << 20});
 *     if (e)
 *         return e;
 */
MK_API duda_verdict duda_form_load(struct duda_ctx *d, const struct mk_form_limits *fields,
                                   const struct mk_multipart_limits *files) MK_API_MUST_USE;
/**
 * The value of the first form field with that name; absent if there is none or the form could not be
 * received. In the latter case, the client gets the error of duda_form_load() even if the handler returns
 * success. The value is NUL-terminated and lives as long as the request.
 *
 *     mk_str name = duda_form(d, "name");
 *     if (!name.len)
 *         return duda_problem(d, 422, "`name` is missing");
 */
MK_API mk_str duda_form(struct duda_ctx *d, const char *name);
/** The whole form, which lives as long as the request; empty, never NULL, if the form could not be
 * received. */
MK_API const struct mk_form *duda_form_all(struct duda_ctx *d);
/**
 * Fills a struct (see duda_form_data_bind()). Returns 0; -EINVAL: *errors lists the validation errors, and
 * *out contains the strings of the form, so that the page can show the form again. Return any other result
 * from the handler. If `errors` is NULL, the function itself sends the validation errors, as problem details
 * with status 422. Templates see the errors as `@errors` (see duda/render.h); to show a page with the form
 * again, duda_bind_form_or_render() is shorter.
 *
 *     struct person person = {.age = 18};
 *     int e = duda_bind_form(d, &person_schema, &person, NULL);
 *     if (e)
 *         return e;
 */
MK_API duda_verdict duda_bind_form_checked(struct duda_ctx *d, const struct duda_schema *schema, void *out,
                                           size_t size,
                                           struct duda_validation_errors *errors) MK_API_MUST_USE;
#ifndef __cplusplus
/** Calls the function above with the size of the struct. Returns -EFAULT, which becomes status 500, if the
 * schema describes a struct of another size. */
#define duda_bind_form(d, schema, out, ...) duda_bind_form_checked(d, schema, out, sizeof *(out), __VA_ARGS__)
#endif

/** The first uploaded file with that field name; NULL if there is none. A file field that the user left empty
 * does not count. */
MK_API const struct mk_upload *duda_upload(struct duda_ctx *d, const char *name);
/**
 * The i-th uploaded file of the form; NULL if there are fewer. Empty file fields do not count.
 *
 *     const struct mk_upload *photo;
 *     for (size_t i = 0; (photo = duda_upload_at(d, i)); i++) {
 *         mk_str name;
 *         int e = duda_upload_save_unique(d, photo, "/var/lib/photos", &name);
 *         if (e)
 *             return e;
 *     }
 */
MK_API const struct mk_upload *duda_upload_at(struct duda_ctx *d, size_t i);
/**
 * Sets *content to the content of the file, NUL-terminated, in the memory of the handler. For large files,
 * use duda_upload_save() or duda_upload_read(). Returns 0; -ENOMEM; or an error of duda_upload_read(). On
 * error, *content is absent.
 *
 *     mk_str content;
 *     const struct mk_upload *file = duda_upload(d, "file");
 *     int e = file ? duda_upload_content(d, file, &content) : 422;
 */
MK_API int duda_upload_content(struct duda_ctx *d, const struct mk_upload *upload,
                               mk_str *content) MK_API_MUST_USE;
/**
 * Copies up to `cap` bytes of the file, starting at `offset`. Returns the number of bytes, which may be less
 * than `cap`, 0 at the end of the file, or a negative errno value. To read the whole file, repeat the call
 * until it returns 0. May block on disk I/O if the form is in a file.
 *
 *     char buf[4096];
 *     ssize_t n;
 *     for (uint64_t at = 0; (n = duda_upload_read(d, file, buf, sizeof buf, at)) > 0; at += (uint64_t)n)
 *         mk_buf_add(&out, mk_str_of(buf, (size_t)n));
 *     if (n < 0)
 *         return (int)n;
 */
MK_API ssize_t duda_upload_read(struct duda_ctx *d, const struct mk_upload *upload, char *buf, size_t cap,
                                uint64_t offset) MK_API_MUST_USE;
/**
 * Saves the file under a new name. A thread copies it while the handler waits. Choose the path in the
 * service: it must not contain text from the client. Use an absolute path: a relative path starts at the
 * working directory of the server. The sandbox must permit access to its folder: configure the folder with a
 * key of the service's section that has the flag MK_CONF_WRITES (see duda_settings()), or list it in
 * `WritablePaths` of [DUDA]. The file appears under its name only when it is complete and the handler is
 * still running. duda_send_file_from() serves it.
 *
 * Returns 0; -EEXIST: the file already exists; -EROFS: the workers may not write to the folder; -ENOTDIR: the
 * folder does not exist; -ENOSPC and the other errors of open(2); or the error of a failed wait. On error, no
 * file is created. If the file system does not support O_TMPFILE (NFS, for example), the folder contains a
 * temporary file `.duda-NUMBER.part` during the copy, which remains after a crash. Also returns -ENOMEM if
 * `path` is NULL, as after a failed duda_sprintf().
 *
 *     int64_t id; // a number cannot lead out of the folder
 *     if (!duda_param_int(d, "id", &id))
 *         return 404;
 *     mk_str path = duda_sprintf(d, "/var/lib/photos/%lld.jpg", (long long)id);
 *     int e = duda_upload_save(d, file, path.p);
 *     return e ? e : 201;
 */
MK_API int duda_upload_save(struct duda_ctx *d, const struct mk_upload *upload,
                            const char *path) MK_API_MUST_USE;
/**
 * Saves the file in a folder under a unique name, like duda_upload_save(), and sets *name to that name: 32
 * random hexadecimal digits, without an extension, so that no server takes the file for a script. Store the
 * name together with the client's file name, which you pass to duda_attachment() when you send the file. On
 * error, *name is absent.
 *
 *     mk_str name;
 *     const struct shop *shop = duda_settings(d); // with a key `Photos`, for example
 *     int e = duda_upload_save_unique(d, file, shop->photos.p, &name);
 */
MK_API int duda_upload_save_unique(struct duda_ctx *d, const struct mk_upload *upload, const char *folder,
                                   mk_str *name) MK_API_MUST_USE;

/**
 * Saves the whole request body as a new file, for uploads without a form, such as `curl -T video.mp4`. The
 * server receives the body into memory or a temporary file first; a thread then copies it to `path`, as
 * duda_upload_save() does. The file appears under its name only when it is complete. `.body_max` of the route
 * limits its size. Returns 0 on success. Return any other result from the handler: 413 (too long), 415 (the
 * body is compressed), 400, 503 or 507, or an error of duda_upload_save(). An existing file is not
 * replaced: -EEXIST becomes 409. To replace a file, save under a temporary name, and call rename(2).
 *
 *     int e = duda_body_save(d, "/srv/videos/17.mp4");
 *     return e ? e : 201;
 */
MK_API duda_verdict duda_body_save(struct duda_ctx *d, const char *path) MK_API_MUST_USE;

/**
 * Receives an upload, a multipart request body, part by part as it arrives: for files that you store
 * elsewhere or that are larger than the disk, or to report the progress of the upload. The callbacks
 * may wait; unread data then stays with the client (flow control). Do not combine it with the functions
 * above. Returns the results of duda_form_load(), or the error of a callback.
 *
 *     static int begin_part(void *ctx, const struct mk_multipart_part *part)
 *     {
 *         struct progress *p = ctx;
 *         p->is_file = part->file_name.p;
 *         return 0;
 *     }
 *
 *     static int count_bytes(void *ctx, mk_str bytes)
 *     {
 *         struct progress *p = ctx;
 *         p->n_bytes += p->is_file ? bytes.len : 0; // or forward the bytes, which may wait
 *         return 0;
 *     }
 *
 *     struct progress progress = {0};
 *     const struct mk_multipart_ops ops = {.part = begin_part, .data = count_bytes};
 *     int e = duda_multipart_read(d, NULL, &ops, &progress);
 *     return e ? e : duda_printf(d, "%zu bytes\n", progress.n_bytes);
 */
MK_API int duda_multipart_read(struct duda_ctx *d, const struct mk_multipart_limits *limits,
                               const struct mk_multipart_ops *ops, void *ctx) MK_API_MUST_USE;

#ifdef __cplusplus
}

template <typename type>
static inline MK_API_MUST_USE duda_verdict duda_bind_form(struct duda_ctx *d,
                                                          const struct duda_schema *schema, type *out,
                                                          struct duda_validation_errors *errors)
{
    return duda_bind_form_checked(d, schema, out, sizeof *out, errors);
}
#endif

#endif
