/* SPDX-License-Identifier: Apache-2.0 */
#include "server/build_info.h"

#include <sys/utsname.h>

#include "connection/http2.h"
#include "event/tls.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/module_path.h"
#include "os/sandbox.h"
#include "setup/builtin.h"

#ifdef __OPTIMIZE__
#define BUILT_AS "optimized"
#else
#define BUILT_AS "for debugging"
#endif
#ifdef __clang__ /* the version text of clang includes its name */
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

static void write_landlock(struct mk_buf *out)
{
    struct mk_sandbox box;
    if (mk_sandbox_open(&box) == 0)
        mk_buf_addf(out, "Landlock  yes, ABI %d\n", box.abi);
    else
        mk_buf_add(out, MK_STR("Landlock  no: workers are not confined to the folders they serve\n"));
    mk_fd_close(&box.fd);
}

static void write_library(struct mk_buf *out, const char *what, const char *library, const char *error)
{
    mk_buf_addf(out, "%-9s %s%s\n", what, library ? library : "no: ", library ? "" : error);
}

static void write_libraries(struct mk_buf *out)
{
    const char *error;
    const struct mk_http2_module *http2 = mk_conn_manager_get_http2_module();
    write_library(out, "HTTP/2", http2 ? http2->vendor : NULL, "Monkey was built without nghttp2");
    const struct mk_tls_module *tls = mk_tls_load(&error);
    write_library(out, "TLS", tls ? tls->vendor : NULL, error);
}

void mk_build_info_write(struct mk_buf *out)
{
    struct utsname system;
    mk_buf_add(out, MK_STR("Monkey " MK_VERSION "\n"
                           "built     " BUILT_AS " by " COMPILER "\n"
                           "config    " MK_SYSCONFDIR "/monkey\n"
                           "handlers  static redirect status\n"
                           "built in "));
    for (const struct mk_plugin *const *p = mk_builtin_plugins; *p; p++)
        mk_buf_addf(out, " %s", (*p)->name);
    mk_buf_add(out, mk_builtin_plugins[0] ? MK_STR("\n") : MK_STR(" no plugins\n"));
    mk_buf_add(out, MK_STR("plugins   "));
    mk_module_path_list_folders(out);
    mk_buf_addf(out, ", ABI %d\n", MK_ABI);
    if (*mk_features_with)
        mk_buf_addf(out, "with      %s\n", mk_features_with);
    if (*mk_features_without)
        mk_buf_addf(out, "without   %s\n", mk_features_without);
    write_libraries(out);
    if (uname(&system) == 0)
        mk_buf_addf(out, "system    %s %s %s\n", system.sysname, system.release, system.machine);
    write_landlock(out);
}
