/* SPDX-License-Identifier: Apache-2.0 */
#include "upload.h"

#include <errno.h>
#include <fcntl.h>
#include <monkey/form.h>
#include <monkey/mem.h>
#include <monkey/spool.h>
#include <monkey/worker.h>
#include <stddef.h>
#include <unistd.h>

#include "upload_store.h"

enum { FILES_MAX = 100, NOTE_MAX = 2048 };

/* An upload. A thread may still store files when the request has ended. */
struct upload {
    struct upload_job job;
    struct mk_request *request; /* NULL: it has ended */
    int folder;                 /* -1: closed */
    struct upload_store *store; /* NULL: the form is not complete */
};

const bool dirlisting_upload_is_built = true;

static const char upload_key;

/* ---- Permission ---- */

bool dirlisting_upload_is_allowed(const struct mk_request *request, const struct settings *settings)
{
    return settings->upload == UPLOAD_ANYONE ||
           (settings->upload == UPLOAD_USERS && mk_request_user(request).len);
}

static bool is_host_of(const struct mk_request *request, mk_str url)
{
    static const mk_str slashes = MK_STR_INIT("://");
    while (url.len && !mk_str_starts(url, slashes))
        url = mk_str_skip(url, 1);
    url = mk_str_skip(url, slashes.len < url.len ? slashes.len : url.len);
    return url.len && mk_str_eq_nocase(mk_str_cut(&url, '/'), mk_request_header(request, MK_STR("Host")));
}

/* A page of another site must not upload files with the credentials of its visitor. Browsers send at least one of these
 * headers with a form; other programs send none. */
static bool is_same_origin(const struct mk_request *request)
{
    mk_str site = mk_request_header(request, MK_STR("Sec-Fetch-Site")),
           origin = mk_request_header(request, MK_STR("Origin")),
           referer = mk_request_header(request, MK_STR("Referer"));
    if (site.p)
        return mk_str_eq(site, MK_STR("same-origin"));
    if (origin.p)
        return is_host_of(request, origin);
    return !referer.p || is_host_of(request, referer);
}

/* ---- Results ---- */

static const struct upload_result wait_result = {0, MK_STR_INIT("")};

static struct upload_result note_result(unsigned status, const char *note)
{
    return (struct upload_result){status, mk_str_from_c(note)};
}

/* Appends the name of a file to the note. */
static struct upload_result file_result(struct mk_request *request, unsigned status, const char *note,
                                        mk_str name)
{
    char *buf = mk_request_alloc(request, NOTE_MAX);
    struct mk_buf out = mk_buf_fixed(buf, buf ? NOTE_MAX : 0);
    mk_buf_add(&out, mk_str_from_c(note));
    mk_buf_add(&out, MK_STR(": "));
    dirlisting_write_name(&out, mk_str_first(name, UPLOAD_NAME_MAX), mk_buf_add);
    return (struct upload_result){status, mk_buf_str(&out)};
}

static struct upload_result form_result(struct mk_request *request, int e)
{
    mk_str reason = mk_request_form_error(request);
    unsigned status = mk_form_status(e);
    if (reason.len)
        return (struct upload_result){status, reason};
    return note_result(status, status == 413   ? "The files are too large."
                               : status == 415 ? "Expected a form with files (multipart/form-data)."
                               : status >= 500 ? "The server has no space for the files now."
                                               : "The form is incomplete or malformed.");
}

static struct upload_result store_result(struct mk_request *request, const struct upload *u)
{
    const struct upload_store *s = u->store;
    if (u->job.error)
        return note_result(503, "The server is busy. Try again later.");
    if (!s->error)
        return note_result(303, "");
    mk_str name = mk_str_from_c(s->files[s->failed < s->n ? s->failed : 0].name);
    switch (s->error) {
    case -EEXIST:
        return file_result(request, 409, "A file of this name exists already", name);
    case -EISDIR:
    case -ENOTDIR:
    case -ENOTEMPTY:
        return file_result(request, 409, "A folder of this name exists already", name);
    case -ENOSPC:
    case -EDQUOT:
    case -EFBIG:
        return file_result(request, 507, "The server has no space for this file", name);
    case -ENAMETOOLONG:
    case -EINVAL:
        return file_result(request, 400, "This name is not allowed", name);
    default:
        mk_request_log(request, MK_LOG_ERROR, "cannot store the upload %s: %s%s", name.p, strerror(-s->error),
                       s->error == -EROFS
                           ? "; if systemd runs the server, add ReadWritePaths= for the folder to its unit"
                           : "");
        return s->error == -EACCES || s->error == -EPERM || s->error == -EROFS
                   ? file_result(request, 403, "The server may not write this file", name)
                   : file_result(request, 500, "The server could not store this file", name);
    }
}

/* ---- The thread ---- */

static void close_folder(struct upload *u)
{
    if (u->folder >= 0)
        close(u->folder);
    u->folder = -1;
}

static void free_upload(struct upload *u)
{
    close_folder(u);
    if (u->store && u->store->spool >= 0)
        close(u->store->spool);
    mk_mem_free(u->store);
    mk_mem_free(u);
}

static struct upload *upload_of_job(struct upload_job *job)
{
    return (struct upload *)((char *)job - offsetof(struct upload, job));
}

static void store_in_thread(struct upload_job *job)
{
    dirlisting_upload_store(upload_of_job(job)->store);
}

static void on_stored(struct upload_job *job)
{
    struct upload *u = upload_of_job(job);
    if (u->request)
        mk_request_resume(u->request);
    else
        free_upload(u);
}

static void on_request_end(void *data)
{
    struct upload *u = data;
    u->request = NULL;
    if (u->job.state == UPLOAD_JOB_WAITING)
        dirlisting_upload_queue_remove(u->job.queue, &u->job);
    if (u->job.state != UPLOAD_JOB_RUNNING)
        free_upload(u);
}

/* ---- Requests ---- */

/* Returns 0, or the reason of a rejection. */
static struct upload_result check_files(struct mk_request *request, const struct mk_form *form)
{
    if (!form->n_uploads)
        return note_result(400, "Choose at least one file.");
    if (form->n_uploads > FILES_MAX)
        return note_result(413, "At most 100 files can be uploaded at once.");
    for (size_t i = 0; i < form->n_uploads; i++)
        if (!dirlisting_upload_is_name(form->uploads[i].file_name))
            return file_result(request, 400, "This name is not allowed", form->uploads[i].file_name);
    return wait_result;
}

static struct upload_store *new_store(struct mk_request *request, const struct mk_form *form)
{
    size_t n = form->n_uploads;
    int fd = mk_spool_fd(mk_request_form_spool(request));
    struct upload_store *s = mk_mem_zalloc(1, sizeof *s + n * sizeof s->files[0]);
    if (!s)
        return NULL;
    s->spool = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    s->n = n;
    for (size_t i = 0; i < n; i++) {
        const struct mk_upload *f = &form->uploads[i];
        s->files[i].offset = f->offset;
        s->files[i].size = f->size;
        memcpy(s->files[i].name, f->file_name.p, f->file_name.len);
    }
    return s;
}

static struct upload_result start_storing(struct mk_request *request, struct upload *u,
                                          const struct settings *settings, struct upload_queue *queue,
                                          const struct mk_form *form)
{
    struct upload_result r = check_files(request, form);
    if (r.status)
        return r;
    u->store = new_store(request, form);
    if (!u->store || u->store->spool < 0)
        return note_result(503, "The server has no memory for the files now.");
    u->store->folder = u->folder;
    u->store->may_replace = settings->overwrite;
    u->job.store = store_in_thread;
    u->job.finish = on_stored;
    mk_addr_client_prefix(mk_request_client_addr(request), &u->job.client);
    dirlisting_upload_queue_add(queue, &u->job);
    return u->job.state == UPLOAD_JOB_DONE ? store_result(request, u) : wait_result;
}

static struct upload *begin_upload(struct mk_request *request, int folder)
{
    struct upload *u = mk_mem_zalloc(1, sizeof *u);
    if (!u) {
        close(folder);
        return NULL;
    }
    u->request = request;
    u->folder = folder;
    return mk_request_attach(request, &upload_key, u, on_request_end) ? NULL : u;
}

bool dirlisting_upload_has_begun(const struct mk_request *request)
{
    return mk_request_attached(request, &upload_key) != NULL;
}

struct upload_result dirlisting_upload_run(struct mk_request *request, const struct settings *settings,
                                           struct upload_queue *queue, int folder)
{
    const struct mk_multipart_limits limits = {
        .size = settings->upload_max, .file = settings->upload_max, .parts = 2 * FILES_MAX};
    const struct mk_form *form;
    struct upload *u = mk_request_attached(request, &upload_key);
    if (!u && !(u = begin_upload(request, folder)))
        return note_result(503, "The server is out of memory.");
    if (u->job.state == UPLOAD_JOB_DONE)
        return store_result(request, u);
    if (u->job.state != UPLOAD_JOB_NEW)
        return wait_result;
    if (!dirlisting_upload_is_allowed(request, settings))
        return note_result(403, "Log in to upload files.");
    if (!is_same_origin(request))
        return note_result(403, "A page of another site has sent this form.");
    int e = mk_request_form(request, NULL, &limits, &form);
    if (e == -EAGAIN)
        return wait_result;
    return e ? form_result(request, e) : start_storing(request, u, settings, queue, form);
}
