// Package ignitiontest holds configs against the programs that judge and run them: ignition-validate, the Ignition engine, and Butane.
// tools/run builds each from source once; the engine takes some minutes then, and needs libblkid's headers, which Debian's apt-get brings.
package ignitiontest
