/* SPDX-License-Identifier: Apache-2.0 */
/* Receives a firmware image of any size in 64 KB of memory. Threads of the worker write it to the disk, which
 * may block; in the meantime, the server reads nothing from the client. */
#include "device.h"

#include <errno.h>
#include <fcntl.h>
#include <monkey/json.h>
#include <monkey/worker.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char image[] = "firmware.bin", partial[] = "firmware.part";

/* The progress, for GET /api/firmware. `is_busy` also allows only one upload at a time. */
static atomic_bool is_busy;
static atomic_llong received, total; /* `total` is -1 if the client did not send a Content-Length */

/* An upload, which is freed when the request has ended and no thread writes its buffer. */
struct upload {
    struct mk_request *request; /* NULL: it has ended */
    int fd, error;
    bool is_writing, is_last, is_stored;
    size_t len;
    char buf[64 << 10];
};

static void upload_free(struct upload *u)
{
    if (u->fd >= 0)
        close(u->fd);
    if (!u->is_stored)
        unlink(partial);
    free(u);
    atomic_store(&is_busy, false);
}

static void on_request_end(void *data)
{
    struct upload *u = data;
    u->request = NULL;
    if (!u->is_writing)
        upload_free(u);
}

static struct upload *upload_new(struct mk_request *request)
{
    struct upload *u = calloc(1, sizeof *u);
    if (!u)
        return NULL;
    u->request = request;
    u->fd = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (u->fd < 0 || mk_request_add_cleanup(request, on_request_end, u)) {
        upload_free(u);
        return NULL;
    }
    mk_request_set_data(request, u);
    atomic_store(&received, 0);
    atomic_store(&total, mk_request_length(request));
    return u;
}

/* Runs in a thread of mk_worker_offload(). */
static void write_buffer(void *ctx)
{
    struct upload *u = ctx;
    for (size_t at = 0; at < u->len && !u->error;) {
        ssize_t n = write(u->fd, u->buf + at, u->len - at);
        if (n > 0)
            at += (size_t)n;
        else if (n < 0 && errno != EINTR)
            u->error = errno;
    }
    if (u->is_last && !u->error) {
        if (fsync(u->fd) || rename(partial, image))
            u->error = errno;
        u->is_stored = !u->error;
    }
}

/* Runs in the thread of the request, after write_buffer(). */
static void on_written(void *ctx)
{
    struct upload *u = ctx;
    u->is_writing = false;
    atomic_fetch_add(&received, (long long)u->len);
    u->len = 0;
    if (u->request)
        mk_request_resume(u->request);
    else
        upload_free(u);
}

/* Fills the buffer from the request. Returns 1 if it is full, 0 at the end of the body, or an error. */
static ssize_t fill_buffer(struct upload *u)
{
    while (u->len < sizeof u->buf) {
        ssize_t n = mk_request_read(u->request, u->buf + u->len, sizeof u->buf - u->len);
        if (n <= 0)
            return n;
        u->len += (size_t)n;
    }
    return 1;
}

static enum mk_verdict fail(struct mk_response *response, unsigned status)
{
    mk_response_set_status(response, status);
    return MK_ERROR;
}

/* Called when the request arrives, when more of its body has arrived, and after mk_request_resume(). */
static enum mk_verdict receive(struct mk_request *request, struct mk_response *response, void *data)
{
    struct upload *u = mk_request_data(request);
    (void)data;
    if (!u) {
        if (!auth_check(request, response))
            return MK_ERROR;
        if (atomic_exchange(&is_busy, true))
            return fail(response, 409);
        if (!(u = upload_new(request)))
            return fail(response, 500);
    }
    if (u->is_writing)
        return MK_WAIT;
    if (u->error)
        return fail(response, u->error == ENOSPC ? 507 : 500);
    if (u->is_stored) {
        mk_response_set_status(response, 204);
        return MK_DONE;
    }
    ssize_t n = fill_buffer(u);
    if (n == -EAGAIN)
        return MK_WAIT;
    if (n < 0)
        return fail(response, n == -EMSGSIZE ? 413 : 400);
    u->is_last = n == 0;
    u->is_writing = true;
    if (mk_worker_offload(mk_request_worker(request), write_buffer, on_written, u)) {
        u->is_writing = false;
        return fail(response, 503);
    }
    return MK_WAIT;
}

static enum mk_verdict show_progress(struct mk_request *request, struct mk_response *response, void *data)
{
    char buf[128];
    struct mk_buf out = mk_buf_fixed(buf, sizeof buf);
    struct mk_json_writer w = mk_json_writer_to(&out);
    (void)data;
    if (!auth_check(request, response))
        return MK_ERROR;
    mk_json_begin_object(&w);
    mk_json_bool(mk_json_key(&w, "busy"), atomic_load(&is_busy));
    mk_json_int(mk_json_key(&w, "received"), atomic_load(&received));
    mk_json_int(mk_json_key(&w, "total"), atomic_load(&total));
    mk_json_end_object(&w);
    mk_response_add_header(response, MK_STR("Content-Type"), MK_STR("application/json"));
    mk_response_set_body(response, mk_buf_str(&out));
    return MK_DONE;
}

int firmware_add(struct mk_server *s)
{
    return mk_server_set(s, "LOCATION", "Path", "/api/firmware") ||
           mk_server_set(s, "LOCATION", "MaxBodySize", "256M") ||
           mk_server_add_route(s, "PUT /api/firmware", receive, NULL) ||
           mk_server_add_route(s, "GET /api/firmware", show_progress, NULL);
}
