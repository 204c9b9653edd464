// CUDA's name for the matrix products of a warp.
#pragma once
#include "cuda_emulator.h"
#include "emulated/wmma.h"
