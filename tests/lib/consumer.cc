/* SPDX-License-Identifier: Apache-2.0 */
/* A program in C++ that has a server: handlers are functions without captures, `data` is the object they are about. */
#include <monkey/server.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <string>

namespace
{

struct Free {
    void operator()(mk_server *s) const
    {
        mk_server_free(s);
    }
};

struct App {
    std::string greeting = "hello from C++\n";
};

enum mk_verdict greet(mk_request *, mk_response *response, void *data)
{
    const App *app = static_cast<const App *>(data);
    mk_response_add_header(response, MK_STR("Content-Type"), MK_STR("text/plain"));
    mk_response_set_body(response, mk_str_of(app->greeting.data(), app->greeting.size()));
    return MK_DONE;
}

} // namespace

int main(int argc, char **argv)
{
    App app;
    unsigned port = 0;
    int number = 0;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    std::unique_ptr<mk_server, Free> server(mk_server_new(nullptr));
    if (mk_server_add_route(server.get(), "GET /hello", greet, &app) ||
        mk_server_listen(server.get(), argc > 1 ? argv[1] : "127.0.0.1:0", &port) || mk_server_start(server.get(), 2)) {
        std::fprintf(stderr, "%s\n", mk_server_error(server.get()));
        return 1;
    }
    std::printf("http://127.0.0.1:%u/hello\n", port);
    std::fflush(stdout);
    sigwait(&set, &number);
    mk_server_stop(server.get(), 1000);
    return mk_server_wait(server.get()) != 0;
}
