//! The command line of QEMU.

use crate::kernel::Kernel;
use std::path::{Path, PathBuf};

/// A virtual machine.
#[derive(Clone, Debug)]
pub struct Machine {
    pub cpus: u32,
    pub memory_mib: u32,
    pub acceleration: Acceleration,
    pub cards: Vec<Card>,
    /// A port of 127.0.0.1, in QEMU's network namespace, that leads to the guest's ssh.
    pub ssh_port: Option<u16>,
    /// A path for a socket, by which the guest itself reaches QEMU's monitor: as its serial port `monitor`.
    pub monitor: Option<PathBuf>,
    pub console: Console,
}

/// Where the console goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Console {
    /// QEMU's own output.
    Output,
    File(PathBuf),
}

/// What executes the guest's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceleration {
    /// The processor.
    Kvm,
    /// QEMU translates them, some ten times slower.
    Emulated,
}

/// A network card of the guest, on a TAP device of QEMU's network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    pub model: Model,
    /// The device, made with `multi_queue` if it is virtio-net's with more than one queue.
    pub tap: String,
    /// The last byte of the Ethernet address.
    pub number: u8,
}

/// The kind of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    VirtioNet {
        queues: u32,
    },
    /// Intel 82576 (QEMU 8.0): eight queues.
    Igb,
}

impl Acceleration {
    /// KVM, where this machine's processor virtualises. A /dev/kvm alone is not enough: without the processor's help
    /// it is made for kernels that know of it (kvm-pvm), and Debian's was seen to stop in its first instructions.
    pub fn here() -> Self {
        let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Self::of(Path::new("/dev/kvm").exists(), &flags)
    }

    fn of(has_device: bool, cpuinfo: &str) -> Self {
        let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
        let mut words = flags.unwrap_or_default().split_whitespace();
        match has_device && words.any(|word| matches!(word, "vmx" | "svm")) {
            true => Self::Kvm,
            false => Self::Emulated,
        }
    }
}

impl Card {
    /// Whether its TAP device has to be made with `multi_queue`.
    pub fn takes_several_queues(&self) -> bool {
        matches!(self.model, Model::VirtioNet { queues } if queues > 1)
    }

    /// Its Ethernet address, of QEMU's range.
    pub fn address(&self) -> String {
        format!("52:54:00:6d:67:{:02x}", self.number)
    }
}

impl Machine {
    /// The words; QEMU has to run where the TAP devices are.
    pub fn command(&self, kernel: &Kernel, initramfs: &Path) -> Vec<String> {
        let mut words = Words(vec![String::from("qemu-system-x86_64")]);
        words.add("-nodefaults -no-user-config -no-reboot -display none -machine q35");
        words.add(match self.acceleration {
            Acceleration::Kvm => "-accel kvm -cpu host",
            Acceleration::Emulated => "-accel tcg,thread=multi -cpu max",
        });
        words.option("-smp", self.cpus.to_string());
        words.option("-m", self.memory_mib.to_string());
        words.option("-kernel", kernel.image.display().to_string());
        words.option("-initrd", initramfs.display().to_string());
        words.option("-append", String::from("console=ttyS0 quiet panic=-1"));
        words.option(
            "-serial",
            match &self.console {
                Console::Output => String::from("stdio"),
                Console::File(path) => format!("file:{}", path.display()),
            },
        );
        words.add("-fsdev local,id=host,path=/,security_model=none,readonly=on,multidevs=remap");
        words.add("-device virtio-9p-pci,fsdev=host,mount_tag=host -device virtio-rng-pci");
        for (index, card) in self.cards.iter().enumerate() {
            words.card(index, card);
        }
        if let Some(port) = self.ssh_port {
            words.option(
                "-netdev",
                format!("user,id=control,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22"),
            );
            words.add("-device virtio-net-pci,netdev=control,mac=52:54:00:6d:67:00");
        }
        if let Some(path) = &self.monitor {
            // QEMU is both ends: the monitor, and what connects a port of the guest to it.
            let path = path.display();
            words.option(
                "-chardev",
                format!("socket,id=monitor,path={path},server=on,wait=off"),
            );
            words.option("-chardev", format!("socket,id=port,path={path}"));
            words.add("-mon chardev=monitor,mode=readline -device virtio-serial-pci");
            words.add("-device virtserialport,chardev=port,name=monitor");
        }
        words.0
    }
}

struct Words(Vec<String>);

impl Words {
    fn add(&mut self, words: &str) {
        self.0.extend(words.split(' ').map(String::from));
    }

    fn option(&mut self, name: &str, value: String) {
        self.0.extend([String::from(name), value]);
    }

    /// Its part of the network is called `card0`, as `set_link` of the monitor takes it.
    fn card(&mut self, index: usize, card: &Card) {
        let (tap, address) = (&card.tap, card.address());
        let queues = match card.model {
            Model::VirtioNet { queues } if queues > 1 => format!(",queues={queues}"),
            _ => String::new(),
        };
        self.option(
            "-netdev",
            format!("tap,id=card{index},ifname={tap},script=no,downscript=no{queues}"),
        );
        let device = match card.model {
            // Zero copy needs a device that sees memory as others do (`virtqueue_dma_dev` in virtnet_xsk_pool_enable).
            Model::VirtioNet { queues } => {
                let several = match queues > 1 {
                    // One each way, and those of configuration and control.
                    true => format!(",mq=on,vectors={}", 2 * queues + 2),
                    false => String::new(),
                };
                format!("virtio-net-pci,iommu_platform=on,disable-legacy=on{several}")
            }
            Model::Igb => String::from("igb"),
        };
        self.option(
            "-device",
            format!("{device},netdev=card{index},mac={address}"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kvm_takes_a_processor_that_virtualises() {
        let check = |has_device, flags: &str, expected| {
            let text = format!("model name\t: x\nflags\t\t: fpu {flags} sse2\n");
            assert_eq!(Acceleration::of(has_device, &text), expected, "{flags}");
        };
        check(true, "vmx", Acceleration::Kvm);
        check(true, "svm", Acceleration::Kvm);
        check(true, "avx", Acceleration::Emulated);
        check(false, "vmx", Acceleration::Emulated);
    }

    #[test]
    fn cards_have_their_queues_and_names() {
        let card = |model, number| Card {
            model,
            tap: format!("tap{number}"),
            number,
        };
        let machine = Machine {
            cpus: 2,
            memory_mib: 1024,
            acceleration: Acceleration::Emulated,
            cards: vec![card(Model::VirtioNet { queues: 4 }, 1), card(Model::Igb, 2)],
            ssh_port: Some(2222),
            monitor: None,
            console: Console::File(PathBuf::from("/tmp/console")),
        };
        let kernel = Kernel {
            image: PathBuf::from("/boot/vmlinuz"),
            modules: PathBuf::from("/lib/modules"),
        };
        let text = machine
            .command(&kernel, Path::new("/tmp/initramfs"))
            .join(" ");
        for part in [
            "-accel tcg,thread=multi -cpu max -smp 2 -m 1024 -kernel /boot/vmlinuz -initrd /tmp/initramfs",
            "-serial file:/tmp/console",
            "-netdev tap,id=card0,ifname=tap1,script=no,downscript=no,queues=4",
            "disable-legacy=on,mq=on,vectors=10,netdev=card0,mac=52:54:00:6d:67:01",
            "-netdev tap,id=card1,ifname=tap2,script=no,downscript=no -device igb,netdev=card1,mac=52:54:00:6d:67:02",
            "hostfwd=tcp:127.0.0.1:2222-:22",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("monitor"), "{text}");
    }
}
