// CUDA's name for a part of what the emulator declares in one piece.
#pragma once
#include "cuda_emulator.h"
