/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin for qemu-user that counts the instructions of the emulated program and all its children, in a
 * shared file of 8 bytes that can be read at any time. `-plugin instructions.so,counter=PATH`.
 *
 * The plugin interface is declared here, because Debian's qemu-user lacks the header; all of it dates from
 * before QEMU 5. The build tries several versions of the interface (MK_QEMU_API). */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t plugin_id;
struct qemu_info;
struct translated_block;
enum { CHANGES_NO_REGISTERS = 0 };

extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id,
                                                  void (*callback)(plugin_id, struct translated_block *));
extern size_t qemu_plugin_tb_n_insns(const struct translated_block *block);
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct translated_block *block,
                                                 void (*callback)(unsigned, void *), int flags, void *data);

EXPORT extern int qemu_plugin_version;
EXPORT int qemu_plugin_install(plugin_id id, const struct qemu_info *info, int argc, char **argv);

int qemu_plugin_version = MK_QEMU_API;
static uint64_t *counter;

static void count_block_instructions(unsigned cpu, void *n)
{
    (void)cpu;
    __atomic_fetch_add(counter, (uint64_t)(uintptr_t)n, __ATOMIC_RELAXED);
}

static void on_block_translated(plugin_id id, struct translated_block *block)
{
    (void)id;
    size_t n = qemu_plugin_tb_n_insns(block);
    qemu_plugin_register_vcpu_tb_exec_cb(block, count_block_instructions, CHANGES_NO_REGISTERS,
                                         (void *)(uintptr_t)n);
}

static int open_counter(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *counter) < 0)
        return -1;
    counter = mmap(NULL, sizeof *counter, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return counter == MAP_FAILED ? -1 : 0;
}

int qemu_plugin_install(plugin_id id, const struct qemu_info *info, int argc, char **argv)
{
    static const char name[] = "counter=";
    (void)info;
    if (argc != 1 || strncmp(argv[0], name, sizeof name - 1) != 0 ||
        open_counter(argv[0] + sizeof name - 1) < 0)
        return -1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_block_translated);
    return 0;
}
