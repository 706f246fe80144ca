//! Chooses the stack of our own: the command line's or the configuration's.
//!
//! It is made once, before any socket listens, and stays until the end: what a reload reads is checked and compared.

use crate::cycle::NotOpened;
use crate::launch::Launch;
use crate::process_log::ProcessLog;
use crate::threads;
use mill_config::Config;
use mill_config::config::LogLevel;
use mill_config::diagnostic::Diagnostic;
use mill_config::load::Options;
use mill_device::specification::Specification;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The stack that a configuration names. Its file names are relative to the configuration.
pub(crate) fn of_configuration(
    config: &Config,
    options: &Options,
) -> Result<Option<Specification>, Box<Diagnostic>> {
    let Some(stack) = &config.main.network_stack else {
        return Ok(None);
    };
    let directory = options.conf_prefix();
    let directory = Path::new(OsStr::from_bytes(&directory));
    let text = stack.text.display();
    let specification = Specification::parse_in(&text, directory).map_err(|error| {
        let message = format!("\"network_stack\" directive: {error}");
        let mut error = stack.spot.diagnostic(LogLevel::Emerg, message);
        let help = "\"millstream serve --help\" lists the options of a stack";
        error.help = Some(String::from(help));
        Box::new(error)
    })?;
    Ok(Some(specification))
}

/// The launch with the stack that is to be made: the command line takes precedence over the configuration.
pub(crate) fn settle(launch: &Launch, log: &ProcessLog) -> Result<Launch, NotOpened> {
    let mut settled = launch.clone();
    let refused = |error: &Diagnostic| {
        log.write_diagnostic(error);
        NotOpened::Configuration
    };
    // Other errors in it are reported by the next reader.
    let Ok(config) = launch.texts.read(&launch.options).result else {
        return Ok(settled);
    };
    let named = of_configuration(&config, &launch.options).map_err(|error| refused(&error))?;
    match (&launch.stack, &config.main.network_stack) {
        (Some(_), Some(directive)) => {
            let message = "\"network_stack\" directive is not used: the command line's \"--stack\" takes precedence";
            // On the terminal too: the user may not be aware of one of the two.
            log.write_diagnostic(&directive.spot.diagnostic(LogLevel::Warn, message));
        }
        (Some(_), None) => {}
        (None, directive) => {
            settled.stack = named;
            if let (Some(stack), Some(directive)) = (&mut settled.stack, directive) {
                stack.origin = format!("network_stack, {}", directive.spot);
            }
        }
    }
    if let Some(stack) = &mut settled.stack {
        stack.workers.count = threads::thread_count(&config.main);
    }
    let Some(polling) = launch.polling else {
        return Ok(settled);
    };
    match &mut settled.stack {
        Some(stack) => stack.set_polling(polling, "--polling"),
        None => {
            let what = "\"--polling\" sets the polling mode of a stack of our own: it needs \"--stack\", \
                        or \"network_stack\" in the configuration";
            log.write(LogLevel::Emerg, what);
            return Err(NotOpened::Configuration);
        }
    }
    Ok(settled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::Texts;
    use crate::launch::EarlyLog;
    use crate::upgrade::Invocation;
    use mill_config::source::Memory;
    use mill_stack::polling::Polling;

    fn launch(text: &str, stack: Option<&str>, polling: Option<Polling>) -> Launch {
        let options = Options::default();
        let name = options.conf_file();
        Launch {
            program: "millstream",
            version: String::new(),
            options,
            texts: Texts::Memory(Memory::new().with(name.to_vec(), format!("{text} events {{}}"))),
            early_log: EarlyLog::Terminal,
            invocation: Invocation::own(),
            has_pid_file: false,
            by_options: false,
            announcement: None,
            stack: stack.map(|text| Specification::parse(text).unwrap()),
            polling,
        }
    }

    /// The resulting interface and polling mode.
    fn settled(launch: &Launch) -> Result<Option<(String, Polling)>, NotOpened> {
        let settled = settle(launch, &ProcessLog::to_terminal("millstream"))?;
        Ok(settled
            .stack
            .map(|stack| (stack.device.to_string(), stack.polling)))
    }

    #[test]
    fn the_command_line_takes_precedence_over_the_configuration() {
        let of_file = "network_stack af_xdp:file0 polling=interrupt;";
        let check = |text, stack, polling, expected: Option<(&str, Polling)>| {
            let found = settled(&launch(text, stack, polling)).unwrap();
            let expected = expected.map(|(name, polling)| (name.to_owned(), polling));
            assert_eq!(found, expected, "{text} {stack:?} {polling:?}");
        };
        let own = Some("af_xdp:own0");
        let spin = Some(Polling::Spin);
        let unsaid = Polling::default();
        check("", None, None, None);
        check("network_stack kernel;", None, None, None);
        check("", own, None, Some(("own0", unsaid)));
        check(of_file, None, None, Some(("file0", Polling::Interrupt)));
        check(of_file, None, spin, Some(("file0", Polling::Spin)));
        check(of_file, own, None, Some(("own0", unsaid)));
        check("", own, spin, Some(("own0", Polling::Spin)));
    }

    #[test]
    fn contradictory_settings_are_refused() {
        let check = |text, stack, polling| {
            let found = settled(&launch(text, stack, polling));
            assert_eq!(found, Err(NotOpened::Configuration), "{text}");
        };
        check("", None, Some(Polling::Spin));
        check("network_stack af_xdp:eth0 brust=5;", None, None);
        // Also if it is not used, so that the error does not appear later.
        check("network_stack eth0;", Some("af_xdp:own0"), None);
    }

    #[test]
    fn errors_name_their_place() {
        let text = "user nobody;\nnetwork_stack af_xdp:eth0\n    brust=5;";
        let launch = launch(text, None, None);
        let config = launch.texts.read(&launch.options).result.unwrap();
        let error = of_configuration(&config, &launch.options).unwrap_err();
        let file = launch.options.conf_file();
        assert_eq!(
            error.line(),
            format!(
                "[emerg] \"network_stack\" directive: \"brust\" is no option of a stack, did you mean \"burst\"? in {}:3",
                file.display()
            )
        );
    }
}
