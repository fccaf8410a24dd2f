#include "helper/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void allow_folder(int rules, const char *folder)
{
    struct landlock_path_beneath_attr rule = {
        .allowed_access = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
        .parent_fd = open(folder, O_PATH | O_CLOEXEC | O_DIRECTORY),
    };
    if (rule.parent_fd < 0)
        return;
    syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    close(rule.parent_fd);
}

void landlock_allow_fonts(void)
{
    static const char *const folders[] = {"/usr/share/fonts",       "/usr/local/share/fonts", "/etc/fonts",
                                          "/usr/share/fontconfig",  "/var/cache/fontconfig",  "/usr/share/poppler",
                                          "/usr/share/ghostscript", "/usr/share/texmf/fonts", "/usr/share/texlive"};
    static const char *const in_home[] = {".fonts", ".local/share/fonts", ".config/fontconfig", ".cache/fontconfig"};
    const struct landlock_ruleset_attr all = {.handled_access_fs =
                                                  LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                                                  LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR};
    const char *home = getenv("HOME");
    char path[4096];
    int rules = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof(uint64_t), 0);
    if (rules < 0)
        return;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        allow_folder(rules, folders[i]);
    for (size_t i = 0; home && *home == '/' && i < sizeof in_home / sizeof *in_home; i++) {
        snprintf(path, sizeof path, "%s/%s", home, in_home[i]);
        allow_folder(rules, path);
    }
    syscall(SYS_landlock_restrict_self, rules, 0);
    close(rules);
}
