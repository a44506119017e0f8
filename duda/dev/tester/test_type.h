/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a running test. */
#ifndef DUDA_DEV_TEST_TYPE_H
#define DUDA_DEV_TEST_TYPE_H

#include <duda/test.h>
#include <monkey/buf.h>
#include <monkey/plugin.h>
#include <monkey/test_client.h>

enum {
    TESTER_KEPT_MAX = 4096,
    TESTER_COOKIES_MAX = 64,
    TESTER_FIELDS_MAX = 64,
    TESTER_BODY_MAX = 256 * 1024 * 1024
};

struct tester_cookie {
    struct mk_buf name, value, path;
    int64_t expires; /* 0: when the test ends */
};

struct duda_test {
    const char *name;
    bool failed;
    struct mk_buf kept[TESTER_KEPT_MAX]; /* strings that live until the end of the test */
    size_t n_kept;
    struct tester_cookie cookies[TESTER_COOKIES_MAX];
    size_t n_cookies;
    struct duda_test_response last; /* the last response */
    bool is_last_explained;         /* a failure has shown it, or the test expects its status */
    bool is_last_error_page; /* its body is an error page of the server, which says no more than the status */
    struct duda_test_stream *streams;
    struct duda_test_websocket *websockets;
    struct duda_test_backend *backends;
};

/* Marks the test as failed, and prints " GET /: PROBLEM". */
void tester_fail_request(struct duda_test *t, const char *method, const char *target, const char *problem);
/* Returns a copy that lives until the end of the test, with a NUL after it. An absent string stays absent. */
mk_str tester_keep(struct duda_test *t, mk_str text);
/* Begins a request: the reason of its response is the log messages of the next request that has this method and
 * target. */
void tester_reason_begin(const char *method, const char *target);
/* Stores the reason of the response, which becomes the last one of the test. */
void tester_reason_end(struct duda_test *t, struct duda_test_response *response);
/* The plugin that collects the log messages of requests. */
extern const struct mk_plugin tester_reason_plugin;

/* Returns the server with the service, which the first call starts. If it does not start, the process
 * exits. */
struct mk_server *tester_server(void);
bool tester_server_is_started(void);
/* Returns the folder of this test, for sockets, databases and stores. */
const char *tester_folder(void);
void tester_server_free(void);

/* Returns the address of the fake server that replaces the server of the [HTTP_CLIENT] section with this
 * Name; NULL if there is none. The package duda-http calls this function, if the program defines it. */
const char *duda_test_backend_address(const char *name);

/* Writes the headers of a request, "Name: value\r\n...", including the Cookie header. */
void tester_write_headers(struct duda_test *t, const struct duda_test_request *request, struct mk_buf *out);
/* Stores the cookies of a response, and removes expired ones. */
void tester_store_cookies(struct duda_test *t, mk_str headers, const char *target);
/* Returns the value of the first header with that name. */
mk_str tester_find_header(mk_str headers, mk_str name);

/* Ends what the test has opened, and frees its memory. */
void tester_streams_close(struct duda_test *t);
void tester_websockets_close(struct duda_test *t);
void tester_backends_stop(struct duda_test *t);
void tester_cookies_free(struct duda_test *t);

#endif
