#include "course/judge/panel.h"

#include <cstdlib>
#include <sstream>

#include "course/judge/known_answers.h"

namespace stagecraft::stages {
namespace {

std::map<std::string, std::string>& refused() {
  static std::map<std::string, std::string> all;
  return all;
}

}  // namespace

bool is_panel() {
  static const bool is = std::getenv("STAGE_PANEL") != nullptr;
  return is;
}

void ask_panel(const Case& question, const FindProblem& find_problem) {
  static const std::filesystem::path folder = std::getenv("STAGE_OURS");
  std::istringstream names(std::getenv("STAGE_PANEL"));
  for (std::string name; std::getline(names, name, ':');) {
    if (refused().contains(name)) continue;
    const std::string problem = find_problem(ask_ours(folder / name, question.request));
    if (!problem.empty()) refused()[name] = question.name + ": " + problem;
  }
}

const std::map<std::string, std::string>& refused_by_panel() { return refused(); }

}  // namespace stagecraft::stages
