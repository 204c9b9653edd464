// Attack: changes files that it may not even read, and the program that it runs.
// Ends as: wrong
// Without confinement: harms
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/xattr.h>

#include "attack.h"

static void attack() {
  harmed_if(chmod(CANARY, 0) == 0, "rights of a file");
  harmed_if(chown(CANARY, getuid(), getgid()) == 0, "owner of a file");
  harmed_if(utimes(CANARY, nullptr) == 0, "time of a file");
  harmed_if(setxattr(CANARY, "user.attack", "x", 1, 0) == 0, "attribute of a file");
  harmed_if(truncate(CANARY, 0) == 0, "cut a file");
  harmed_if(can_open(CANARY, O_WRONLY | O_TRUNC), "wrote a file");
  harmed_if(rename(CANARY, CANARY ".moved") == 0, "moved a file");
  harmed_if(unlink(CANARY) == 0, "removed a file");
  harmed_if(symlink(CANARY, FOLDER "/link") == 0, "made a link");
  harmed_if(link(SECRET, FOLDER "/link") == 0, "made a hard link");
  harmed_if(mkdir(FOLDER "/folder", 0700) == 0, "made a folder");
  harmed_if(can_open(ROOT "/tests/attacks/attack.h", O_WRONLY | O_APPEND), "wrote our tests");
}
