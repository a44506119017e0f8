/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads of files with a form, in the manner of mg_handle_form_request() of civetweb: each file is stored in the
 * working directory. docs/guide/from-civetweb.md compares it with the original. */
#include <errno.h>
#include <fcntl.h>
#include <monkey/form.h>
#include <monkey/server.h>
#include <monkey/spool.h>
#include <monkey/text.h>
#include <monkey/worker.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <unistd.h>

enum { FILES_MAX = 8 };

static const char page[] = "<!doctype html><title>Upload</title>\n"
                           "<form method=post action=/upload enctype=multipart/form-data>\n"
                           "<input type=file name=file multiple> <button>Upload</button></form>\n";

/* The file names of clients are only displayed: the program chooses the names under which it stores files. */
struct file {
    char path[32];
    off_t offset; /* in the body of the request */
    size_t size;
};

/* The files of a request, which a thread stores. Freed when the request has ended and the thread has returned. */
struct job {
    struct mk_request *request; /* NULL: it has ended */
    bool is_running, is_done;
    int body, error;
    size_t n;
    struct file files[FILES_MAX];
};

static void job_free(struct job *job)
{
    if (job->body >= 0)
        close(job->body);
    free(job);
}

static void on_request_end(void *data)
{
    struct job *job = data;
    job->request = NULL;
    if (!job->is_running)
        job_free(job);
}

static int store_file(int body, struct file *file)
{
    int err = 0, fd = open(file->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    while (file->size && !err) {
        ssize_t n = sendfile(fd, body, &file->offset, file->size);
        if (n <= 0)
            err = n < 0 ? -errno : -EIO;
        else
            file->size -= (size_t)n;
    }
    if (close(fd) && !err)
        err = -errno;
    if (err)
        unlink(file->path);
    return err;
}

/* Runs in a thread of mk_worker_offload(), where it may block. */
static void store_files(void *ctx)
{
    struct job *job = ctx;
    for (size_t i = 0; i < job->n && !job->error; i++)
        job->error = store_file(job->body, &job->files[i]);
}

/* Runs in the thread of the request, after store_files(). */
static void on_stored(void *ctx)
{
    struct job *job = ctx;
    job->is_running = false;
    job->is_done = true;
    if (job->request)
        mk_request_resume(job->request);
    else
        job_free(job);
}

static struct job *job_new(struct mk_request *request, const struct mk_form *form)
{
    static atomic_uint n_stored;
    int fd = mk_spool_fd(mk_request_form_spool(request));
    struct job *job = calloc(1, sizeof *job);
    if (!job)
        return NULL;
    job->request = request;
    job->body = fd < 0 ? -1 : dup(fd); /* the spool ends with the request, maybe before the thread */
    for (; job->n < form->n_uploads; job->n++) {
        struct file *file = &job->files[job->n];
        snprintf(file->path, sizeof file->path, "upload-%d-%u", getpid(), atomic_fetch_add(&n_stored, 1));
        file->offset = (off_t)form->uploads[job->n].offset;
        file->size = (size_t)form->uploads[job->n].size;
    }
    if (job->body < 0 || mk_request_add_cleanup(request, on_request_end, job)) {
        job_free(job);
        return NULL;
    }
    mk_request_set_data(request, job);
    return job;
}

static enum mk_verdict fail(struct mk_response *response, unsigned status)
{
    mk_response_set_status(response, status);
    return MK_ERROR;
}

static enum mk_verdict show_result(struct mk_response *response, const struct mk_form *form)
{
    struct mk_buf text = mk_buf_growing(64 << 10);
    mk_buf_add(&text, MK_STR("<!doctype html><title>Upload</title>\n<ul>\n"));
    for (size_t i = 0; i < form->n_uploads; i++) {
        mk_buf_add(&text, MK_STR("<li>"));
        mk_html_escape(&text, form->uploads[i].file_name);
        mk_buf_addf(&text, ": %llu bytes\n", (unsigned long long)form->uploads[i].size);
    }
    mk_buf_add(&text, MK_STR("</ul>\n"));
    bool failed = text.failed || mk_response_set_body(response, mk_buf_str(&text));
    mk_buf_free(&text);
    return failed ? MK_ERROR : MK_DONE;
}

/* Called when the request arrives, when more of its body has arrived, and after mk_request_resume(). */
static enum mk_verdict receive(struct mk_request *request, struct mk_response *response, void *data)
{
    static const struct mk_multipart_limits limits = {.size = 64 << 20, .file = 64 << 20, .parts = FILES_MAX};
    struct job *job = mk_request_data(request);
    const struct mk_form *form;
    int err = mk_request_form(request, NULL, &limits, &form);
    (void)data;
    if (err == -EAGAIN)
        return MK_WAIT;
    if (err)
        return fail(response, mk_form_status(err));
    if (job && job->is_done)
        return job->error ? fail(response, 500) : show_result(response, form);
    if (job)
        return MK_WAIT;
    if (!form->n_uploads)
        return fail(response, 400);
    if (!(job = job_new(request, form)))
        return fail(response, 500);
    job->is_running = true;
    if (mk_worker_offload(mk_request_worker(request), store_files, on_stored, job)) {
        job->is_running = false;
        return fail(response, 503);
    }
    return MK_WAIT;
}

static enum mk_verdict show_form(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request, (void)data;
    mk_response_set_body_nocopy(response, mk_str_of(page, sizeof page - 1));
    return MK_DONE;
}

int main(int argc, char **argv)
{
    unsigned port;
    int number;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    struct mk_server *s = mk_server_new(NULL);
    if (mk_server_set(s, "SERVER", "MaxBodySize", "64M") || mk_server_enable_body_spool(s) ||
        mk_server_set_default_type(s, "text/html; charset=utf-8") ||
        mk_server_add_route(s, "GET /", show_form, NULL) ||
        mk_server_add_route(s, "POST /upload", receive, NULL) ||
        mk_server_listen(s, argc > 1 ? argv[1] : "127.0.0.1:2001", &port) || mk_server_start(s, 2)) {
        fprintf(stderr, "upload: %s\n", mk_server_error(s));
        mk_server_free(s);
        return 1;
    }
    printf("http://127.0.0.1:%u/\n", port);
    fflush(stdout);
    sigwait(&set, &number);
    mk_server_stop(s, 5000);
    int err = mk_server_wait(s);
    mk_server_free(s);
    return err != 0;
}
