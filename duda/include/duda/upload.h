/* SPDX-License-Identifier: Apache-2.0 */
/* Forms of a request: their fields, and the files that come with them. */
#ifndef DUDA_UPLOAD_H
#define DUDA_UPLOAD_H

#include <duda/form.h>
#include <duda/multipart.h>
#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A file of a form. It is a part of the content, which the server keeps in memory or in an unlinked file in
 * its `SpoolFolder`: it has no name there, and is gone when the request ends, however it ends. A NUL follows each text. */
struct duda_upload {
    mk_str name;      /**< of the field */
    mk_str file_name; /**< as the client says; see duda_file_name_clean() */
    mk_str type;      /**< as the client says; absent if it does not */
    uint64_t size;
    uint64_t at; /**< where it begins in the content */
};

/**
 * Receives the form: urlencoded or multipart, with files. Waits. Without it, the first of the functions below
 * does so, with the defaults of all limits. 0; anything else is what the handler returns: 415 (the content is
 * no form), 413 (a limit is exceeded), 400 (malformed), 503 or 507 (the server has no room), or an error of a
 * wait. Later calls answer the same.
 *
 *     int e = duda_form_load(d, NULL, &(struct duda_multipart_limits){.size = 8 << 20, .file = 8 << 20});
 *     if (e)
 *         return e;
 */
MK_API int duda_form_load(struct duda_ctx *d, const struct duda_form_limits *fields,
                          const struct duda_multipart_limits *files) MK_API_MUST_USE;
/** The value of the first field of that name; absent if there is none, or the form could not be received. A
 * NUL follows it. It lives as long as the request. */
MK_API mk_str duda_form(struct duda_ctx *d, const char *name);
/** All fields; none if the form could not be received. */
MK_API const struct duda_form_data *duda_form_all(struct duda_ctx *d);
/**
 * Fills a struct (see duda_form_data_bind()). 0; -EINVAL: *flaws say why, for the page that shows the form
 * again; anything else is what the handler returns.
 */
MK_API int duda_bind_form(struct duda_ctx *d, const struct duda_schema *shape, void *out,
                          struct duda_validation_errors *flaws) MK_API_MUST_USE;

/** The first file of that name, and the i-th of all; NULL if there is none. A field of a form that was left
 * empty is none. */
MK_API const struct duda_upload *duda_upload(struct duda_ctx *d, const char *name);
MK_API const struct duda_upload *duda_upload_at(struct duda_ctx *d, size_t i);
/** Copies up to `cap` bytes of it from position `at`: how many, 0 at its end, or a negated errno value. */
MK_API ssize_t duda_upload_read(struct duda_ctx *d, const struct duda_upload *upload, char *room, size_t cap,
                                uint64_t at) MK_API_MUST_USE;
/**
 * Copies it to a new file, in a thread, and waits for that. The path is the service's: never make it of what
 * the client says. The sandbox must allow it (see mk_config_allow_writing()). The file gets its name when it is
 * complete, and only if the handler still runs. 0; -EEXIST: the file is there already; -ENOSPC and what open(2)
 * says; or an error of a wait: on every error there is no file. A file system that has no unnamed files (O_TMPFILE),
 * such as NFS, has a file `.duda-NUMBER.part` in the folder in the meantime, which a crash leaves there.
 */
MK_API int duda_upload_save(struct duda_ctx *d, const struct duda_upload *upload,
                            const char *path) MK_API_MUST_USE;

/**
 * Reads multipart content part by part as it arrives, for files that go elsewhere or are larger than the
 * disk. The ops may wait: what is not read yet stays with the client. Not together with the functions above.
 * As duda_form_load(), or what the ops have answered.
 */
MK_API int duda_multipart_read(struct duda_ctx *d, const struct duda_multipart_limits *limits,
                               const struct duda_multipart_ops *ops, void *ctx) MK_API_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
