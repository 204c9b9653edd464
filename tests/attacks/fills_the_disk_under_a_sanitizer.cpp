// Attack: makes new files beside the answer while the sanitizers look for the line of a crash.
// Ends as: crashed
#include "attack.h"

#include <string>

static const char* last_word;

[[gnu::constructor]] static void keep(int n_words, char** words, char**) {
  last_word = words[n_words - 1];
}

static void attack() {
#ifdef __SANITIZE_ADDRESS__
  const std::string answer = last_word;
  const std::string folder = answer.substr(0, answer.rfind('/') + 1);
  if (!can_open(answer.c_str(), O_WRONLY))
    puts("runtime error: harmed: could not write its answer");
  for (const std::string& name : {folder + "new", answer + "2"}) {
    if (can_open(name.c_str(), O_WRONLY | O_CREAT)) puts("runtime error: harmed: made a file");
  }
  fflush(stdout);
#endif
  __builtin_trap();
}
