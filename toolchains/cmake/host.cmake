# Read by CMake before llama.cpp's own CMakeLists (CMAKE_PROJECT_TOP_LEVEL_INCLUDES).
# It changes how the parts that compute nothing are compiled, never what they are:
# LLAMAWRIGHT_UNITY joins a target's sources, which saves instantiating the same templates
# in each of them; LLAMAWRIGHT_ALONE names the sources that cannot be joined;
# LLAMAWRIGHT_O2 compiles a target with -O2. ggml, the CPU variants and the GPU modules are
# in neither list: their kernels keep upstream's -O3.
cmake_minimum_required(VERSION 3.24)

# The recipe names this file's content, so that a change of it changes every key.
file(SHA256 "${CMAKE_CURRENT_LIST_FILE}" llamawright_seen)
if(DEFINED LLAMAWRIGHT_TUNING AND NOT LLAMAWRIGHT_TUNING STREQUAL llamawright_seen)
  message(FATAL_ERROR "LLAMAWRIGHT_TUNING in the recipe must be ${llamawright_seen}")
endif()

function(llamawright_join target)
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ON
    UNITY_BUILD_BATCH_SIZE 8
    UNITY_BUILD_CODE_AFTER_INCLUDE "#undef FILENAME")
  get_target_property(folder ${target} SOURCE_DIR)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    get_filename_component(name "${source}" NAME)
    if(name IN_LIST LLAMAWRIGHT_ALONE)
      set_source_files_properties("${folder}/${source}" TARGET_DIRECTORY ${target}
        PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
endfunction()

function(llamawright_tune)
  foreach(target IN LISTS LLAMAWRIGHT_UNITY)
    if(NOT TARGET ${target})
      message(FATAL_ERROR "LLAMAWRIGHT_UNITY names ${target}, and there is no such target")
    endif()
    llamawright_join(${target})
  endforeach()
  foreach(target IN LISTS LLAMAWRIGHT_O2)
    if(NOT TARGET ${target})
      message(FATAL_ERROR "LLAMAWRIGHT_O2 names ${target}, and there is no such target")
    endif()
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU,Clang,AppleClang>:-O2>)
  endforeach()
endfunction()

cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL llamawright_tune)
