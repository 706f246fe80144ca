//! Acknowledgements: when, and with which window.
