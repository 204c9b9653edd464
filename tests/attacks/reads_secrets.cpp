// Attack: looks for the answers in dumps, our sources, the seed, the judge's files and environment.
// Ends as: wrong
// Without confinement: harms
#include <dirent.h>
#include <sys/stat.h>

#include <string>

#include "attack.h"

static void attack() {
  harmed_if(can_open(SECRET), "read a secret");
  harmed_if(can_open(ROOT "/tests/data/operators/rms_norm.safetensors"), "read a dump");
  harmed_if(can_open(ROOT "/src/operators/rms_norm.cpp"), "read our answer");
  harmed_if(can_open(ROOT "/stages/stages.json"), "read the registry");
  harmed_if(can_open("/etc/passwd"), "read /etc/passwd");
  const std::string judge = "/proc/" + std::to_string(getppid());
  for (const char* file : {"/environ", "/maps", "/mem", "/cmdline"}) {
    harmed_if(can_open((judge + file).c_str()), "read about the judge in /proc");
  }
  harmed_if(opendir("/") != nullptr, "listed /");
  harmed_if(opendir(FOLDER) != nullptr, "listed a folder of the judge's");
  harmed_if(getenv("STAGE_SEED") != nullptr, "read the seed");
  harmed_if(getenv("STAGE_WORKER") != nullptr, "read the judge's environment");
  for (int file = 3; file < 1024; ++file) {
    harmed_if(fcntl(file, F_GETFD) >= 0, "found a file that the judge has open");
  }
}
