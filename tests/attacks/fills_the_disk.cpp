// Attack: writes until the disk is full: to files that it may write, to new files, to files in
// memory. (Only a little per file; the next attack writes much.)
// Ends as: wrong
// Without confinement: harms
#include <sys/mman.h>
#include <sys/shm.h>

#include "attack.h"

static void attack() {
  for (const char* path :
       {FOLDER "/new", "new-file-of-an-attack", "/tmp/stagecraft-new", "/dev/shm/stagecraft-new"}) {
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    harmed_if(file >= 0, "made a file");
    if (file < 0) continue;
    unlink(path);
    close(file);
  }
  harmed_if(memfd_create("x", 0) >= 0, "made a file in memory");
  const int shared = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
  harmed_if(shared >= 0, "made memory that stays");
  if (shared >= 0) shmctl(shared, IPC_RMID, nullptr);
  harmed_if(fallocate(STDOUT_FILENO, FALLOC_FL_KEEP_SIZE, 0, 1 << 20) == 0,
            "took room on the disk that no limit counts");
}
