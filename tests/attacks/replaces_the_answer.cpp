// Attack: replaces the response with a link or a pipe, or changes the request.
// Ends as: wrong
#include <sys/stat.h>

#include <string>

#include "attack.h"

static std::string request, response;
[[gnu::constructor]] static void remember(int argc, char** argv, char**) {
  if (argc == 3) request = argv[1], response = argv[2];
}

static void attack() {
  harmed_if(unlink(response.c_str()) == 0, "removed the response");
  harmed_if(rename(request.c_str(), response.c_str()) == 0, "put the request in its place");
  harmed_if(symlink("/dev/zero", response.c_str()) == 0, "put a link in its place");
  harmed_if(mkfifo(response.c_str(), 0600) == 0, "put a pipe in its place");
  harmed_if(can_open(request.c_str(), O_WRONLY), "wrote the request");
  harmed_if(can_open((response + ".part").c_str(), O_WRONLY | O_CREAT), "made a file beside it");
}
