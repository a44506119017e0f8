/* SPDX-License-Identifier: Apache-2.0 */
/* memory_certificates [NAMES CERTIFICATE KEY]...: a TLS server with certificates from memory. The program
 * erases that memory before the server starts. NAMES `-` adds the certificate before any virtual host; with
 * KEY `-`, CERTIFICATE also contains the key.
 * memory_certificates --control [NAMES CERTIFICATE KEY]...: the same, but listens without TLS at first, and reads
 * commands from standard input: `replace NAME CERTIFICATE KEY` with NAME `-` for all hosts, and `listen ADDRESS`.
 * Prints the result of each.
 * memory_certificates --oom CERTIFICATE KEY: adds a certificate with each allocation failing in turn. */
#include <monkey/server.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- A heap whose nth allocation fails ---- */

static size_t n_allocs, fail_at;

static void *resize(void *old, size_t size)
{
    return ++n_allocs == fail_at ? NULL : realloc(old, size);
}

/* ---- Certificates ---- */

static char *read_file(const char *path)
{
    static char buffer[64 * 1024];
    FILE *f = fopen(path, "re");
    size_t len = f ? fread(buffer, 1, sizeof buffer - 1, f) : 0;
    if (f)
        fclose(f);
    /* the exact size, so that the sanitizer detects reads past the end */
    char *text = f ? malloc(len + 1) : NULL;
    if (!text) {
        fprintf(stderr, "memory_certificates: cannot read %s\n", path);
        exit(2);
    }
    memcpy(text, buffer, len);
    text[len] = '\0';
    explicit_bzero(buffer, sizeof buffer);
    return text;
}

static void erase(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

static int add_certificate(struct mk_server *s, const char *certificate_file, const char *key_file)
{
    char *certificate = read_file(certificate_file);
    char *key = strcmp(key_file, "-") ? read_file(key_file) : NULL;
    int e = mk_server_add_certificate(s, certificate, key);
    erase(certificate);
    erase(key);
    return e;
}

static enum mk_verdict hello(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request;
    (void)data;
    mk_response_set_body_nocopy(response, MK_STR("hello"));
    return MK_DONE;
}

static int set_up(struct mk_server *s, char **words)
{
    int e = mk_server_add_route(s, "GET /", hello, NULL);
    for (; !e && *words; words += 3) {
        if (strcmp(*words, "-"))
            e = mk_server_add_vhost(s, *words, NULL);
        if (!e)
            e = add_certificate(s, words[1], words[2]);
    }
    return e;
}

static int try_without_memory(const char *certificate, const char *key)
{
    int e = 0;
    (void)mk_mem_set_allocator(resize, free);
    for (fail_at = 1, n_allocs = 1; fail_at <= n_allocs + 1; fail_at++) {
        n_allocs = fail_at; /* no allocation fails here */
        struct mk_server *s = mk_server_new(NULL);
        n_allocs = 0;
        e = add_certificate(s, certificate, key);
        printf("%d\n", e);
        mk_server_free(s);
    }
    return e != 0;
}

static int serve(char **words)
{
    unsigned port;
    int number;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    struct mk_server *s = mk_server_new(NULL);
    int e = set_up(s, words);
    if (e || (e = mk_server_listen(s, "127.0.0.1:0 tls", &port)) || (e = mk_server_start(s, 2))) {
        fprintf(stderr, "%d %s\n", e, mk_server_error(s));
        mk_server_free(s);
        return 1;
    }
    fprintf(stderr, "%s\n", mk_server_error(s)); /* warnings */
    printf("Serves at\n  https://127.0.0.1:%u/\n", port);
    fflush(stdout);
    sigwait(&set, &number);
    mk_server_free(s);
    return 0;
}

/* ---- Changes while the server is running ---- */

static int replace_certificate(struct mk_server *s, const char *name, const char *certificate_file,
                               const char *key_file)
{
    char *certificate = read_file(certificate_file);
    char *key = strcmp(key_file, "-") ? read_file(key_file) : NULL;
    int e = mk_server_replace_certificate(s, strcmp(name, "-") ? name : NULL, certificate, key);
    erase(certificate);
    erase(key);
    return e;
}

static int run_command(struct mk_server *s, char *line, unsigned *port)
{
    char name[256], certificate[1024], key[1024];
    *port = 0;
    if (sscanf(line, "replace %255s %1023s %1023s", name, certificate, key) == 3)
        return replace_certificate(s, name, certificate, key);
    line[strcspn(line, "\n")] = '\0';
    return strncmp(line, "listen ", 7) == 0 ? mk_server_listen(s, line + 7, port) : 1;
}

static int control(char **words)
{
    char line[4096];
    unsigned port;
    struct mk_server *s = mk_server_new(NULL);
    int e = set_up(s, words);
    if (e || (e = mk_server_listen(s, "127.0.0.1:0", &port)) || (e = mk_server_start(s, 2)))
        fprintf(stderr, "%d %s\n", e, mk_server_error(s));
    while (!e && fgets(line, sizeof line, stdin)) {
        int result = run_command(s, line, &port);
        printf("%d %u %s\n", result, port, result ? mk_server_error(s) : "");
        fflush(stdout);
    }
    mk_server_free(s);
    return e != 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--oom") == 0)
        return try_without_memory(argv[2], argv[3]);
    if (argc % 3 == 2 && strcmp(argv[1], "--control") == 0)
        return control(argv + 2);
    return argc % 3 == 1 ? serve(argv + 1) : 2;
}
